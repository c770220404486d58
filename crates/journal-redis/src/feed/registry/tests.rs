//! Listeners that come and go at every point of a subscription.

use super::super::Heard;
use super::*;

const NAME: &[u8] = b"a";

fn name() -> Bytes {
    Bytes::from_static(NAME)
}

fn registry() -> Registry {
    Registry::new(10, 1000)
}

fn subscribe() -> Vec<Order> {
    vec![Order::Subscribe(name())]
}

fn unsubscribe() -> Vec<Order> {
    vec![Order::Unsubscribe(name())]
}

/// What it hears without waiting.
fn heard(mailbox: &Mailbox) -> Vec<Heard> {
    let mut all = Vec::new();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    while let std::task::Poll::Ready(Some(heard)) =
        std::pin::pin!(mailbox.next()).as_mut().poll(&mut cx)
    {
        all.push(heard);
    }
    all
}

fn message(text: &'static str) -> Heard {
    Heard::Message(Bytes::from_static(text.as_bytes()))
}

/// A registry in which one listens, and its subscription stands.
fn standing() -> (Registry, Arc<Mailbox>) {
    let registry = registry();
    let listener = registry.join(&name());
    assert_eq!(registry.orders(9), subscribe());
    registry.subscribed(NAME).expect("it was asked for");
    assert_eq!(heard(&listener), [Heard::Renewed]);
    (registry, listener)
}

#[test]
fn two_listeners_are_one_subscription() {
    let (registry, one) = standing();
    let two = registry.join(&name());
    assert_eq!(heard(&two), [Heard::Renewed]);
    assert_eq!(registry.orders(9), []);
    registry.message(NAME, b"x").expect("it stands");
    assert_eq!(heard(&one), [message("x")]);
    assert_eq!(heard(&two), [message("x")]);
    registry.leave(&name(), &one);
    assert_eq!(registry.orders(9), []);
    registry.leave(&name(), &two);
    assert_eq!(registry.orders(9), unsubscribe());
}

#[test]
fn nothing_is_left_after_the_last_one() {
    let (registry, listener) = standing();
    registry.leave(&name(), &listener);
    assert_eq!(registry.orders(9), unsubscribe());
    registry.unsubscribed(NAME).expect("it was asked for");
    assert_eq!(registry.orders(9), []);
    assert!(registry.lock().channels.is_empty());
}

#[test]
fn one_that_comes_while_the_channel_is_left_waits_for_the_new_subscription() {
    let (registry, first) = standing();
    registry.leave(&name(), &first);
    assert_eq!(registry.orders(9), unsubscribe());
    let second = registry.join(&name());
    // The old subscription may still speak; nothing before `Renewed` is heard.
    registry.message(NAME, b"old").expect("it is on its way");
    assert_eq!(registry.orders(9), []);
    registry.unsubscribed(NAME).expect("it was asked for");
    assert_eq!(registry.orders(9), subscribe());
    assert_eq!(heard(&second), []);
    registry.subscribed(NAME).expect("it was asked for");
    assert_eq!(heard(&second), [Heard::Renewed]);
}

#[test]
fn one_that_goes_before_the_confirmation_leaves_after_it() {
    let registry = registry();
    let listener = registry.join(&name());
    assert_eq!(registry.orders(9), subscribe());
    registry.leave(&name(), &listener);
    assert_eq!(registry.orders(9), []);
    registry.subscribed(NAME).expect("it was asked for");
    assert_eq!(registry.orders(9), unsubscribe());
}

#[test]
fn coming_and_going_without_a_connection_leaves_nothing() {
    let registry = registry();
    for _ in 0..3 {
        let listener = registry.join(&name());
        registry.leave(&name(), &listener);
    }
    assert_eq!(registry.orders(9), []);
    assert!(registry.lock().channels.is_empty());
}

#[test]
fn after_a_loss_everything_wanted_is_asked_for_again() {
    let (registry, listener) = standing();
    registry.lost();
    assert_eq!(registry.orders(9), subscribe());
    registry.subscribed(NAME).expect("it was asked for");
    assert_eq!(heard(&listener), [Heard::Renewed]);
}

#[test]
fn a_loss_forgets_what_was_being_left() {
    let (registry, listener) = standing();
    registry.leave(&name(), &listener);
    assert_eq!(registry.orders(9), unsubscribe());
    registry.lost();
    assert_eq!(registry.orders(9), []);
    assert!(registry.lock().channels.is_empty());
}

#[test]
fn orders_come_in_portions() {
    let registry = registry();
    let _listeners: Vec<_> = (0..5u8)
        .map(|n| registry.join(&Bytes::copy_from_slice(&[n])))
        .collect();
    assert_eq!(registry.orders(2).len(), 2);
    assert_eq!(registry.orders(2).len(), 2);
    assert_eq!(registry.orders(2).len(), 1);
}

#[test]
fn what_was_not_asked_for_is_refused() {
    let (registry, _listener) = standing();
    assert_eq!(registry.subscribed(NAME), Err(Unexpected));
    assert_eq!(registry.unsubscribed(NAME), Err(Unexpected));
    assert_eq!(registry.message(b"other", b"x"), Err(Unexpected));
}

#[test]
fn closing_ends_those_who_listen_and_those_who_come() {
    let (registry, listener) = standing();
    registry.close();
    let late = registry.join(&name());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    for mailbox in [listener, late] {
        let next = std::pin::pin!(mailbox.next()).poll(&mut cx);
        assert_eq!(next, std::task::Poll::Ready(None));
    }
}

#[test]
fn a_channel_that_is_elsewhere_is_asked_for_again_only_when_told() {
    let (registry, listener) = standing();
    registry.elsewhere(NAME);
    assert_eq!(registry.orders(9), []);
    registry.again();
    assert_eq!(registry.orders(9), subscribe());
    registry.elsewhere(NAME);
    // Whoever comes wants to know as well.
    let another = registry.join(&name());
    assert_eq!(registry.orders(9), subscribe());
    registry.subscribed(NAME).expect("it was asked for");
    assert_eq!(heard(&listener), [Heard::Renewed]);
    assert_eq!(heard(&another), [Heard::Renewed]);
    // One that stands is left alone.
    registry.again();
    assert_eq!(registry.orders(9), []);
}

#[test]
fn a_channel_that_is_elsewhere_is_left_without_a_word() {
    let (registry, listener) = standing();
    registry.elsewhere(NAME);
    registry.leave(&name(), &listener);
    registry.again();
    assert_eq!(registry.orders(9), []);
    // The slot goes while it is being left.
    let (registry, listener) = standing();
    registry.leave(&name(), &listener);
    assert_eq!(registry.orders(9), unsubscribe());
    registry.elsewhere(NAME);
    registry.elsewhere(NAME);
    registry.again();
    assert_eq!(registry.orders(9), []);
}
