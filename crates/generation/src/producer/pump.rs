//! What a producer does for nearly all of its life: it reads, stages what is ready, and looks who has asked for what.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use streamweld_dialect::BodyEnd;
use tokio::time::Instant;

use super::Producer;
use super::moving::{Found, Moving};
use crate::alarm::Alarm;
use crate::committer::Progress;
use crate::intake::At;
use crate::lifecycle::{End, Loss, Signal};
use crate::log::Log;
use crate::source::{Again, ByteSource, Onward, Read, Rest};

/// How much is staged before it is committed.
const BATCH: usize = 64 << 10;

impl Producer {
    /// Reads until something ends the generation. `None`: the log is somebody else's, or an earlier call ended it.
    pub(super) async fn pump<S: ByteSource + 'static>(
        &mut self,
        source: &mut Option<S>,
        onward: Onward<S>,
        log: &mut Log<'_>,
        moving: Option<Moving<S>>,
    ) -> Option<End> {
        let Onward {
            mut again,
            backends,
            ..
        } = onward;
        let backends = backends.as_ref();
        let durable = self.durable;
        let now = Instant::now().into_std();
        let begun = self.lifecycle.on(Signal::Head { durable }, now);
        if let Some(end) = begun.or_else(|| self.signals()) {
            return Some(end);
        }
        let handle = Arc::clone(&self.handle);
        let mut alarm = Alarm::new(self.deadline());
        let begun = At::now();
        // Nothing was left to read at this moment, and the backend will wake the task: not asked again before it does.
        let mut drained = None;
        // Something was said, and policy allows nobody else to go on.
        let mut is_final = backends.is_none();
        // What is waited for in place of the body.
        let mut next = moving.map(Next::Moving);
        // Whoever wished for something before there was an answer.
        handle.changed().ring();
        loop {
            let wanted = self.deadline();
            if wanted < alarm.deadline() {
                alarm.reset(wanted);
            }
            // By hand, because it is polled for every event: `select!` costs more than all that it chooses from.
            let woke = poll_fn(|cx| {
                if let Poll::Ready(progress) = log.poll(cx) {
                    return Poll::Ready(Woke::Log(progress));
                }
                if handle.changed().poll_heard(cx).is_ready() {
                    return Poll::Ready(Woke::Changed);
                }
                let rung = match drained.take() {
                    Some(now) => alarm.poll_at(cx, now),
                    None => {
                        let woke = match (&mut next, &mut *source) {
                            (Some(Next::Rest(rest, _)), _) => {
                                rest.as_mut().poll(cx).map(Woke::Rest)
                            }
                            (Some(Next::Moving(moving)), _) => {
                                moving.found.as_mut().poll(cx).map(Woke::Found)
                            }
                            (None, Some(source)) if !log.is_behind() => {
                                self.gather(source, begun, cx).map(Woke::Read)
                            }
                            (None, _) => Poll::Pending,
                        };
                        if woke.is_ready() {
                            return woke;
                        }
                        alarm.poll(cx)
                    }
                };
                rung.map(|()| Woke::Deadline)
            })
            .await;
            let end = match woke {
                Woke::Log(Progress::Lost) => return None,
                Woke::Log(Progress::GivenUp) => {
                    *log = Log::given_up();
                    None
                }
                Woke::Log(Progress::Opened | Progress::Refused | Progress::Finished) => None,
                Woke::Changed if log.is_lost(&handle) => return None,
                Woke::Changed => {
                    let end = self.signals();
                    if end.is_none() && next.is_none() {
                        next = self.obey(backends).map(Next::Moving);
                    }
                    end
                }
                Woke::Read(gathered) => {
                    log.staged(handle.window().received());
                    if !is_final && self.lifecycle.has_said() {
                        is_final = true;
                        self.forget_request(backends);
                    }
                    match gathered {
                        Gathered::End(end) => Some(end),
                        Gathered::Last(last) => match self.ask_again(&last, &mut again) {
                            Some(asked) => {
                                next = Some(Next::Rest(asked, last));
                                None
                            }
                            None => self.body_ended(last),
                        },
                        Gathered::Drained(now) => {
                            drained = Some(now);
                            None
                        }
                        Gathered::Full => None,
                    }
                }
                Woke::Rest(Some(found)) => {
                    next = None;
                    *source = Some(found);
                    self.intake.begin_again();
                    None
                }
                Woke::Rest(None) => match next.take() {
                    Some(Next::Rest(_, last)) => self.body_ended(last),
                    Some(Next::Moving(_)) | None => None,
                },
                Woke::Found(found) => {
                    let Some(Next::Moving(moving)) = next.take() else {
                        unreachable!("it was found by this search")
                    };
                    let (body, end) = self.moved(moving, found);
                    if body.is_some() {
                        *source = body;
                    }
                    log.staged(handle.window().received());
                    if end.is_none() {
                        next = self.obey(backends).map(Next::Moving);
                    }
                    end
                }
                Woke::Deadline => {
                    let end = self.signals();
                    alarm.reset(self.deadline());
                    end
                }
            };
            match (end, &mut next) {
                (None, _) => {}
                // It failed while somebody else was looked for: one search is enough.
                (Some(End::Failed(failure)), Some(Next::Moving(moving))) => {
                    *source = None;
                    moving.loss = Some(Loss::Attempt(failure));
                }
                (Some(End::Failed(failure)), None) if !self.lifecycle.is_ended() => {
                    let Some(moving) = self.replace(backends, &failure) else {
                        return Some(End::Failed(failure));
                    };
                    // Its backend may well go on without being heard.
                    *source = None;
                    next = Some(Next::Moving(moving));
                }
                (end, _) => return end,
            }
        }
    }

    /// Stages all that is ready, so that it becomes one batch.
    fn gather<S: ByteSource>(
        &mut self,
        source: &mut S,
        begun: At,
        cx: &mut Context<'_>,
    ) -> Poll<Gathered> {
        let Self {
            handle,
            lifecycle,
            intake,
            shared,
            ..
        } = self;
        let (mut bytes, mut end, mut at) = (0, None, begun);
        loop {
            let read = source.poll_read(cx, &mut |data| {
                if bytes == 0 {
                    at = begun.since();
                }
                bytes += data.len();
                end = intake.take(data, at, handle.window(), lifecycle, &shared.counters);
            });
            let gathered = match read {
                Poll::Ready(Read::Data) => match end.take() {
                    Some(end) => Gathered::End(end),
                    None if bytes < BATCH => continue,
                    None => Gathered::Full,
                },
                Poll::Ready(last) => Gathered::Last(last),
                Poll::Pending if bytes == 0 => return Poll::Pending,
                Poll::Pending => Gathered::Drained(at.instant),
            };
            return Poll::Ready(gathered);
        }
    }

    /// Asks for the rest of an answer that was cut short.
    fn ask_again<S>(&self, last: &Read, again: &mut Option<Again<S>>) -> Option<Rest<S>> {
        let how = match last {
            Read::End => BodyEnd::Clean,
            Read::Cut(_) => BodyEnd::Cut,
            Read::Data | Read::Unusable(..) => return None,
        };
        let is_cut_short = self
            .lifecycle
            .is_cut_short(how, self.intake.tail().as_ref());
        again.as_mut().filter(|_| is_cut_short)?()
    }

    fn body_ended(&mut self, last: Read) -> Option<End> {
        let tail = self.intake.tail();
        match last {
            Read::Data => None,
            Read::End => self.lifecycle.body_ended(BodyEnd::Clean, tail.as_ref()),
            Read::Cut(why) => {
                tracing::debug!(stream_id = %self.handle.spec().id, why, "the backend's body broke off");
                self.lifecycle.body_ended(BodyEnd::Cut, tail.as_ref())
            }
            Read::Unusable(class, message) => self.lifecycle.unusable(class, message),
        }
    }
}

/// What a producer waits for in place of the body that it has, or had.
enum Next<S> {
    /// The rest of a cut answer, with the end that stands when there is none.
    Rest(Rest<S>, Read),
    /// Somebody who goes on.
    Moving(Moving<S>),
}

/// What a running producer has been woken for.
enum Woke<S> {
    /// The journal has said something.
    Log(Progress),
    /// Somebody asked for something, or readers came or left.
    Changed,
    /// The backend has sent something, or ended.
    Read(Gathered),
    /// The backend has been asked for the rest of a cut answer, and has it or not.
    Rest(Option<S>),
    /// A search for somebody who goes on is over.
    Found(Found<S>),
    /// A time has come.
    Deadline,
}

/// Why no more was gathered.
enum Gathered {
    /// Nothing more was ready, and the task will be woken when there is. The time is that of this poll of the task.
    Drained(Instant),
    /// The batch is large enough.
    Full,
    /// An event ended the generation; what the backend sends after it is nobody's.
    End(End),
    /// The body has ended, and this is how.
    Last(Read),
}
