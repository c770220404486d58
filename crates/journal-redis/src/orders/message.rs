//! What is published on the channel of a replica, as text:
//!
//! ```text
//! stop <id> <0|1>                      an order, by an operator or not
//! readers <id> <replica> <0|1>         a follower has come, or has left
//! taken <id> <epoch>                   who writes under this epoch has the generation now
//! offer <id> <replica> <epoch> <last>  whoever writes it would like to hand it over
//! considers <id> <replica> <epoch>     that is looked into
//! declines <id> <replica> <epoch> <why>
//! ```
//!
//! A replica of another version may know more words. What is not one of these is no message here.

use streamweld_journal::{Epoch, Order, Replica, Seq, StreamId, Word, parse_seq};

use super::parse_replica;

/// What a replica is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Order(Order),
    Taken(Epoch),
    Said { from: Replica, word: Word },
}

/// How a word of `from` is written.
pub(super) fn said(from: Replica, id: StreamId, word: &Word) -> String {
    let from = format!("{:032x}", from.0);
    match word {
        Word::Offer { epoch, last } => format!("offer {id} {from} {epoch} {last}"),
        Word::Considers { epoch } => format!("considers {id} {from} {epoch}"),
        Word::Declines { epoch, why } => {
            format!("declines {id} {from} {epoch} {}", shortened(why))
        }
    }
}

pub(super) fn parse(message: &[u8]) -> Option<(StreamId, Message)> {
    let mut words = std::str::from_utf8(message).ok()?.split(' ');
    let what = words.next()?;
    let id = words.next()?.parse().ok()?;
    let message = match what {
        "stop" => Message::Order(Order::Stop {
            admin: parse_flag(words.next()?)?,
        }),
        "readers" => Message::Order(Order::Readers {
            replica: parse_replica(words.next()?)?,
            any: parse_flag(words.next()?)?,
        }),
        "taken" => Message::Taken(parse_epoch(words.next()?)?),
        "offer" | "considers" | "declines" => {
            let from = parse_replica(words.next()?)?;
            let epoch = parse_epoch(words.next()?)?;
            let word = match what {
                "offer" => Word::Offer {
                    epoch,
                    last: parse_seq(words.next()?.as_bytes()).filter(|last| *last > Seq::ZERO)?,
                },
                "considers" => Word::Considers { epoch },
                _ => Word::Declines {
                    epoch,
                    why: Some(words.next()?).filter(|why| is_why(why))?.to_owned(),
                },
            };
            Message::Said { from, word }
        }
        _ => return None,
    };
    words.next().is_none().then_some((id, message))
}

fn parse_flag(word: &str) -> Option<bool> {
    match word {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

fn parse_epoch(word: &str) -> Option<Epoch> {
    Epoch::new(parse_seq(word.as_bytes())?.get())
}

fn is_why(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || b"_,".contains(&byte);
    text.len() <= LONGEST_WHY && text.bytes().all(fits)
}

/// As many whole words of it as may be said.
fn shortened(why: &str) -> &str {
    let mut why = why;
    while !is_why(why) {
        why = why.rsplit_once(',').map_or("", |(shorter, _)| shorter);
    }
    why
}

/// Nearly all gates that there are.
const LONGEST_WHY: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01arz3ndektsv4rrffq69g5fav";

    fn id() -> StreamId {
        ID.parse().unwrap()
    }

    fn epoch(number: u64) -> Epoch {
        Epoch::new(number).unwrap()
    }

    #[track_caller]
    fn check(text: &str, expected: Message) {
        assert_eq!(parse(text.as_bytes()), Some((id(), expected)), "{text}");
        // Not a byte more or less, but for what a last word may lose.
        for text in [
            &format!("{text} "),
            &format!("{text} 1"),
            &format!(" {text}"),
            &text.replacen(' ', "  ", 1),
            &text[..text.rfind(' ').unwrap()],
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn orders_are_read() {
        let order = |order| Message::Order(order);
        check(&format!("stop {ID} 1"), order(Order::Stop { admin: true }));
        let (replica, any) = (Replica(0xab), false);
        check(
            &format!("readers {ID} {:032x} 0", 0xab),
            order(Order::Readers { replica, any }),
        );
        check(&format!("taken {ID} 2"), Message::Taken(epoch(2)));
    }

    #[test]
    fn what_is_said_is_heard() {
        let from = Replica(0xab);
        let whys = ["", "tokens", "tokens,stop_sequence"];
        let declines = whys.map(|why| Word::Declines {
            epoch: epoch(9),
            why: why.to_owned(),
        });
        let offers = [1, u64::MAX].map(|last| Word::Offer {
            epoch: epoch(1),
            last: Seq::new(last),
        });
        let considers = Word::Considers {
            epoch: epoch(Epoch::LAST.get()),
        };
        for word in declines.into_iter().chain(offers).chain([considers]) {
            check(&said(from, id(), &word), Message::Said { from, word });
        }
    }

    #[test]
    fn nothing_else_is_understood() {
        let from = "000000000000000000000000000000ab";
        let long = "x".repeat(LONGEST_WHY + 1);
        for text in [
            "".to_owned(),
            "stop".to_owned(),
            "stop x 1".to_owned(),
            format!("stop {ID} 2"),
            format!("taken {ID} 0"),
            format!("taken {ID} 9223372036854775808"),
            format!("readers {ID} ab 1"),
            format!("offer {ID} {from} 1 0"),
            format!("offer {ID} {from} 1 01"),
            format!("offer {ID} {from} 0 1"),
            format!("offer {ID} {from} +1 1"),
            format!("offer {ID} ab 1 1"),
            format!("offer {ID} {from} 1 18446744073709551616"),
            format!("considers {ID} {from} -1"),
            format!("declines {ID} {from} 1 Tokens"),
            format!("declines {ID} {from} 1 tokens;"),
            format!("declines {ID} {from} 1 tökens"),
            format!("declines {ID} {from} 1 {long}"),
            format!("wonders {ID} {from} 1"),
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(b"stop \xff 1"), None);
    }

    #[test]
    fn a_long_answer_loses_whole_words() {
        let gates = ["request_too_large"; 20].join(",");
        let short = shortened(&gates);
        assert_eq!(short, ["request_too_large"; 11].join(","));
        assert_eq!(shortened(&"x".repeat(300)), "");
        assert_eq!(shortened("tokens,Not a word"), "tokens");
    }
}
