//! What `CLUSTER SLOTS` may say, and what becomes of nodes.

use super::*;

fn text(text: &str) -> Value {
    Value::BulkString(text.into())
}

fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
    let primary = Value::Array(vec![
        host,
        Value::Int(port),
        text("id"),
        Value::Array(vec![]),
    ]);
    let replica = Value::Array(vec![text("10.0.0.9"), Value::Int(7009), text("id")]);
    Value::Array(vec![Value::Int(first), Value::Int(last), primary, replica])
}

fn served(first: usize, last: usize, host: &str, port: u16) -> Served {
    Served {
        range: first..=last,
        by: Address {
            host: host.into(),
            port,
        },
    }
}

#[test]
fn primaries_are_read_and_replicas_left_out() {
    let answer = Value::Array(vec![
        range(0, 99, text("10.0.0.1"), 7000),
        range(100, 16383, text("redis.example"), 7001),
    ]);
    let expected = [
        served(0, 99, "10.0.0.1", 7000),
        served(100, 16383, "redis.example", 7001),
    ];
    assert!(read(answer, "seed").unwrap() == expected);
}

#[test]
fn a_node_without_a_name_is_at_the_host_that_was_asked() {
    for nameless in [Value::Nil, text("")] {
        let answer = Value::Array(vec![range(0, 1, nameless, 7000)]);
        assert!(read(answer, "seed").unwrap() == [served(0, 1, "seed", 7000)]);
    }
}

#[test]
fn what_is_no_map_is_none() {
    let primary = |host, port| Value::Array(vec![host, port]);
    for range in [
        range(0, 16384, text("a"), 7000),
        range(-1, 5, text("a"), 7000),
        range(0, 5, text("a"), 70000),
        range(0, 5, Value::Int(1), 7000),
        Value::Array(vec![Value::Int(0), Value::Int(5)]),
        Value::Array(vec![
            Value::Int(0),
            Value::Int(5),
            primary(text("a"), text("7000")),
        ]),
        Value::Nil,
    ] {
        assert!(
            read(Value::Array(vec![range.clone()]), "seed").is_none(),
            "{range:?}"
        );
    }
    assert!(read(Value::Nil, "seed").is_none());
    assert!(read(Value::Array(vec![]), "seed").unwrap().is_empty());
}

fn make(address: &Address) -> Arc<Node> {
    let target = crate::target::Target::parse("redis://127.0.0.1:1").unwrap();
    let maker = super::super::node::Maker {
        timing: crate::link::Timing::default(),
        signals: Arc::default(),
        kind: crate::feed::Kind::Sharded,
    };
    maker.node(Some(address.clone()), target)
}

fn host(map: &Map, name: &str) -> Option<String> {
    let node = map.node(Slot::of(name))?;
    node.address.as_ref().map(|address| address.host.clone())
}

#[tokio::test]
async fn each_slot_leads_to_its_node_and_others_nowhere() {
    // The slots of `bar` and `foo` are 5061 and 12182.
    let map = Map::default();
    assert!(host(&map, "foo").is_none() && !map.is_connected());
    let map = map.next(
        &[served(0, 5061, "one", 1), served(5062, 12181, "two", 2)],
        make,
    );
    assert_eq!(host(&map, "bar").as_deref(), Some("one"));
    assert_eq!(host(&map, "foo"), None);
    let map = map.next(
        &[served(0, 5060, "one", 1), served(5061, 16383, "two", 2)],
        make,
    );
    assert_eq!(host(&map, "bar").as_deref(), Some("two"));
    assert_eq!(host(&map, "foo").as_deref(), Some("two"));
}

#[tokio::test]
async fn nodes_stay_the_same_for_as_long_as_they_have_slots() {
    let both = [served(0, 5061, "one", 1), served(5062, 16383, "two", 2)];
    let moved = [served(0, 5060, "one", 1), served(5061, 16383, "two", 2)];
    let alone = [served(0, 16383, "two", 2)];
    let first = Map::default().next(&both, make);
    assert!(first.next(&both, make) == first);
    let second = first.next(&moved, make);
    assert!(second != first);
    let node = |map: &Map, name| Arc::clone(map.node(Slot::of(name)).unwrap());
    assert!(Arc::ptr_eq(&node(&first, "foo"), &node(&second, "bar")));
    let third = second.next(&alone, make).next(&both, make);
    assert!(Arc::ptr_eq(&node(&first, "foo"), &node(&third, "foo")));
    assert!(!Arc::ptr_eq(&node(&first, "bar"), &node(&third, "bar")));
}
