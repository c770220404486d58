//! A position in a trace: what one service tells the next (W3C Trace Context).

use std::collections::HashMap;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanContext, TraceContextExt};
use opentelemetry_sdk::propagation::TraceContextPropagator;

/// A span of somebody's, who may be elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Place(SpanContext);

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// As much of a caller's `tracestate` is kept, which is as much as has to be: spans wait with it.
const MOST_STATE: usize = 512;

impl Place {
    /// Where the caller of a request is. `None`: it does not say, or not in a way that can be understood.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut parents = headers.get_all(TRACEPARENT).iter();
        let parent = parents.next()?.to_str().ok()?;
        if parents.next().is_some() {
            return None;
        }
        let states = headers.get_all(TRACESTATE).iter();
        let states: Option<Vec<&str>> = states.map(|state| state.to_str().ok()).collect();
        let state = states.map(|states| states.join(",")).unwrap_or_default();
        Self::told(parent, state)
    }

    /// The one that this `traceparent` names.
    #[must_use]
    pub fn parse(traceparent: &str) -> Option<Self> {
        Self::told(traceparent, String::new())
    }

    fn told(parent: &str, state: String) -> Option<Self> {
        let mut fields = HashMap::from([(TRACEPARENT.to_string(), parent.to_owned())]);
        if !state.is_empty() && state.len() <= MOST_STATE {
            fields.insert(TRACESTATE.to_string(), state);
        }
        let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &fields);
        let place = context.span().span_context().clone();
        place.is_valid().then_some(Self(place))
    }

    /// As a `traceparent`.
    #[must_use]
    pub fn traceparent(&self) -> String {
        let Self(at) = self;
        let flags = u8::from(at.is_sampled());
        format!("00-{}-{}-{flags:02x}", at.trace_id(), at.span_id())
    }

    /// Lets a request say that it comes from here, and nothing else of that kind.
    ///
    /// # Panics
    /// Never: both fields are made of what such fields may hold.
    pub fn tell(&self, headers: &mut HeaderMap) {
        let value = HeaderValue::try_from(self.traceparent()).expect("hexadecimal digits");
        headers.insert(TRACEPARENT, value);
        headers.remove(TRACESTATE);
        let state = HeaderValue::try_from(self.0.trace_state().header());
        if let Some(state) = state.ok().filter(|state| !state.is_empty()) {
            headers.insert(TRACESTATE, state);
        }
    }

    pub(crate) fn at(context: SpanContext) -> Self {
        Self(context)
    }

    pub(crate) fn context(&self) -> &SpanContext {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(fields: &[(HeaderName, &str)]) -> Option<Place> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, value.parse().unwrap());
        }
        Place::of(&headers)
    }

    #[test]
    fn what_is_understood_is_told_again() {
        let state = ("tracestate", "a=1");
        let place = of(&[
            (TRACEPARENT, PARENT),
            (TRACESTATE, state.1),
            (TRACESTATE, "b=2"),
        ]);
        let mut headers = HeaderMap::new();
        headers.insert(TRACEPARENT, HeaderValue::from_static("of another"));
        place.unwrap().tell(&mut headers);
        assert_eq!(headers[TRACEPARENT], PARENT);
        assert_eq!(headers[TRACESTATE], "a=1,b=2");
        let place = Place::parse(PARENT).unwrap();
        assert_eq!(place.traceparent(), PARENT);
        place.tell(&mut headers);
        assert!(!headers.contains_key(TRACESTATE));
    }

    #[test]
    fn what_is_not_understood_is_nothing() {
        let zero = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        for parent in ["", "of another", zero, &PARENT.to_uppercase()] {
            assert_eq!(of(&[(TRACEPARENT, parent)]), None, "{parent}");
        }
        assert_eq!(of(&[(TRACEPARENT, PARENT), (TRACEPARENT, PARENT)]), None);
        assert_eq!(of(&[(TRACESTATE, "a=1")]), None);
    }

    #[test]
    fn a_long_state_is_let_go() {
        let long = format!("a={}", "b".repeat(250));
        let fits = of(&[(TRACEPARENT, PARENT), (TRACESTATE, &long)]).unwrap();
        assert!(!fits.context().trace_state().header().is_empty());
        let longer = [
            (TRACEPARENT, PARENT),
            (TRACESTATE, &long),
            (TRACESTATE, &long),
            (TRACESTATE, &long),
        ];
        let cut = of(&longer).unwrap();
        assert_eq!(cut, Place::parse(PARENT).unwrap());
    }
}
