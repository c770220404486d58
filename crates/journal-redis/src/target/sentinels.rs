//! A master that sentinels know by the name of a service, and who tell when it is another one.
//!
//! Each connection asks them anew, the one first that answered last. What they name is used only when it says itself
//! that it is a master: for a while after a failover sentinels may still name the old one, or a new one that does not
//! know yet. One connection for all of a journal listens to their announcements.

use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{RedisConnectionInfo, Value};
use tokio::sync::watch;
use tokio::time::timeout;

use super::address::{Address, pairs, split_login, split_query};
use super::ask::{ask, log_in};
use super::url::Holds;
use super::{Trust, UrlError};
use crate::feed::{self, Feed, Heard};
use crate::link::ConnectError;
use crate::socket::Socket;

/// Where the master is, as the sentinels say.
pub(super) type Named = Option<(String, u16)>;

pub(super) struct Sentinels {
    /// Each with the login for it.
    sentinels: Vec<Address>,
    /// Who answered last, as a place in that list.
    first: Mutex<usize>,
    service: String,
    /// The master, but for where it is.
    master: Address,
    named: watch::Sender<Named>,
}

impl Sentinels {
    /// Reads `[user[:password]@]host[:port][,host[:port]…]/service[/database][?sentinel_user=…&sentinel_pass=…]`, and
    /// what of it can be shown.
    pub(super) fn read(tls: bool, text: &str) -> Result<(Self, String, Holds), UrlError> {
        let (text, query) = split_query(text);
        let (authority, path) = text.split_once('/').ok_or(UrlError::Service)?;
        let (login, places) = split_login(authority);
        let (service, database) = path.split_once('/').unwrap_or((path, ""));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if service.is_empty() || !service.bytes().all(is_name) {
            return Err(UrlError::Service);
        }
        let own_login = sentinel_login(query)?;
        let sentinel = |place| Address::at_place(tls, own_login.as_deref(), place, 26379, "");
        let sentinels = places.split(',').map(sentinel).collect::<Result<_, _>>()?;
        // The host is a placeholder: where the master is, is asked.
        let master = Address::at_place(tls, login, "master", 6379, database)?;
        let read = Self {
            sentinels,
            first: Mutex::default(),
            service: service.to_owned(),
            master,
            named: watch::Sender::new(None),
        };
        let holds = Holds {
            others: own_login.is_some(),
            ..Holds::login(login)
        };
        Ok((read, format!("{places}/{service}"), holds))
    }

    /// Who is to log in at the master.
    pub(super) fn login(&self) -> &RedisConnectionInfo {
        &self.master.login
    }

    /// A connection to the master on which `login` has logged in, and where that is.
    pub(super) async fn dial(
        &self,
        login: &RedisConnectionInfo,
        trust: &Trust,
    ) -> Result<(Socket, Named), ConnectError> {
        let (host, port) = self.locate(trust).await?;
        let named = Some((host.clone(), port));
        self.name(named.clone());
        let mut socket = self.master.moved_to(host, port).dial(trust.clone()).await?;
        log_in(&mut socket, login).await?;
        match ask(&mut socket, &redis::cmd("ROLE")).await? {
            Value::Array(role) if role.first() == Some(&bulk("master")) => Ok((socket, named)),
            _ => Err(ConnectError::NotMaster),
        }
    }

    /// Waits until the sentinels name another master than this.
    pub(super) async fn moved_from(self: Arc<Self>, named: Named) {
        // The sender is here, so the wait ends with the condition only.
        let mut names = self.named.subscribe();
        _ = names.wait_for(|now| *now != named).await;
    }

    /// Listens to the announcements. It ends when it is aborted.
    pub(super) async fn watch(self: Arc<Self>, trust: Trust) {
        let options = feed::Options {
            name: "sentinels",
            ..feed::Options::default()
        };
        let (dials, trusts) = (Arc::clone(&self), trust.clone());
        let feed = Feed::new(options, move || {
            let (sentinels, trust) = (Arc::clone(&dials), trusts.clone());
            async move { sentinels.listen(&trust).await }
        });
        let mut announced = feed.subscribe("+switch-master");
        while let Some(heard) = announced.next().await {
            match heard {
                Heard::Message(message) => {
                    if let Some(named) = self.announced(&message) {
                        self.name(Some(named));
                    }
                }
                // Announcements may have been missed. Who cannot be asked is not there to have said anything.
                Heard::Renewed => {
                    if let Ok(named) = self.locate(&trust).await {
                        self.name(Some(named));
                    }
                }
            }
        }
    }

    fn name(&self, named: Named) {
        self.named.send_if_modified(|now| {
            let is_news = *now != named;
            *now = named;
            is_news
        });
    }

    /// Reads `<service> <old host> <old port> <new host> <new port>`.
    fn announced(&self, message: &[u8]) -> Option<(String, u16)> {
        let mut words = std::str::from_utf8(message).ok()?.split(' ');
        let service = words.next()?;
        let (host, port) = (words.nth(2)?, words.next()?);
        (service == self.service).then_some((host.to_owned(), port.parse().ok()?))
    }

    /// Asks one after the other where the master is.
    async fn locate(&self, trust: &Trust) -> Result<(String, u16), ConnectError> {
        let mut error = ConnectError::NoSentinel;
        for place in self.order() {
            // Whoever gives up meanwhile begins with the next one.
            self.prefer(place + 1);
            let asked = timeout(ASK, self.ask_one(&self.sentinels[place], trust)).await;
            match asked.unwrap_or(Err(ConnectError::NoSentinel)) {
                Ok(named) => {
                    self.prefer(place);
                    return Ok(named);
                }
                // One that does not know it may be new; what one that answers says tells more than that others do
                // not.
                Err(told @ (ConnectError::UnknownService | ConnectError::SentinelCredentials)) => {
                    error = told;
                }
                Err(told @ ConnectError::CaFile(_)) => return Err(told),
                Err(_) => {}
            }
        }
        Err(error)
    }

    async fn ask_one(
        &self,
        sentinel: &Address,
        trust: &Trust,
    ) -> Result<(String, u16), ConnectError> {
        let mut socket = sentinel.dial(trust.clone()).await?;
        let mut question = redis::cmd("SENTINEL");
        question.arg("get-master-addr-by-name").arg(&self.service);
        let answer = match log_in(&mut socket, &sentinel.login).await {
            Ok(()) => ask(&mut socket, &question).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(Value::Array(parts)) => named(&parts).ok_or(ConnectError::Unusable),
            Ok(Value::Nil) => Err(ConnectError::UnknownService),
            Ok(_) => Err(ConnectError::Unusable),
            Err(ConnectError::Credentials | ConnectError::NoPassword) => {
                Err(ConnectError::SentinelCredentials)
            }
            Err(error) => Err(error),
        }
    }

    /// A connection to a sentinel, for its announcements.
    async fn listen(&self, trust: &Trust) -> io::Result<feed::Link<Socket>> {
        let place = self.order().next().expect("there is at least one");
        let sentinel = &self.sentinels[place];
        match timeout(ASK, sentinel.dial(trust.clone())).await {
            Ok(Ok(stream)) => Ok(feed::Link {
                stream,
                login: super::feed_login(&sentinel.login),
                moved: Box::pin(pending()),
            }),
            failed => {
                self.prefer(place + 1);
                Err(match failed {
                    Ok(Err(error)) => io::Error::other(error),
                    _ => io::ErrorKind::TimedOut.into(),
                })
            }
        }
    }

    /// The places of all, from the one that is asked first.
    fn order(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (*self.lock(), self.sentinels.len());
        (0..count).map(move |step| (first + step) % count)
    }

    fn prefer(&self, place: usize) {
        *self.lock() = place % self.sentinels.len();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, usize> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn named(parts: &[Value]) -> Option<(String, u16)> {
    let [Value::BulkString(host), Value::BulkString(port)] = parts else {
        return None;
    };
    let port = std::str::from_utf8(port).ok()?.parse().ok()?;
    Some((String::from_utf8(host.clone()).ok()?, port))
}

fn bulk(word: &str) -> Value {
    Value::BulkString(word.as_bytes().to_vec())
}

/// Who is to log in at the sentinels, from the query, as `user:password`.
fn sentinel_login(query: Option<&str>) -> Result<Option<String>, UrlError> {
    let (mut user, mut password) = ("", None);
    for pair in pairs(query) {
        match pair.split_once('=') {
            Some(("sentinel_user", value)) => user = value,
            Some(("sentinel_pass", value)) => password = Some(value),
            _ => return Err(UrlError::SentinelQuery),
        }
    }
    // They are read again as a part of a URL, where these would be more than a part of a name.
    let is_plain = |text: &str| !text.contains([':', '/', '@', '?', '[', ']']);
    match password {
        None if user.is_empty() => Ok(None),
        Some(password) if is_plain(user) && is_plain(password) => {
            Ok(Some(format!("{user}:{password}")))
        }
        _ => Err(UrlError::SentinelQuery),
    }
}

/// How long one sentinel may take. They are near and have little to do; one that is gone must not use up the time of
/// the others.
const ASK: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    fn sentinels() -> Arc<Sentinels> {
        let text = "user:pass@a:1,b,[::1],[::2]:3/main/2?sentinel_pass=x";
        let (read, shown, _) = Sentinels::read(false, text).expect("good");
        assert_eq!(shown, "a:1,b,[::1],[::2]:3/main");
        Arc::new(read)
    }

    #[test]
    fn each_sentinel_has_its_port_and_the_login_for_it() {
        let parsed = sentinels();
        let places: Vec<_> = parsed
            .sentinels
            .iter()
            .map(|it| it.at.to_string())
            .collect();
        assert_eq!(places, ["a:1", "b:26379", "::1:26379", "::2:3"]);
        let login = &parsed.sentinels[3].login;
        assert_eq!((login.username(), login.password()), (None, Some("x")));
        let master = &parsed.master.login;
        assert_eq!(
            (master.username(), master.password(), master.db()),
            (Some("user"), Some("pass"), 2)
        );
    }

    #[test]
    fn they_are_asked_in_turn_from_the_one_that_answered() {
        let parsed = sentinels();
        parsed.prefer(2);
        assert_eq!(parsed.order().collect::<Vec<_>>(), [2, 3, 0, 1]);
        parsed.prefer(4);
        assert_eq!(parsed.order().next(), Some(0));
    }

    #[tokio::test]
    async fn what_they_announce_of_this_service_moves_connections() {
        let parsed = sentinels();
        let old = Some(("10.0.0.1".to_owned(), 6379));
        parsed.name(old.clone());
        let mut moved = Box::pin(Arc::clone(&parsed).moved_from(old.clone()));
        for other in [
            &b"other 10.0.0.1 6379 10.0.0.2 6379"[..],
            b"main 10.0.0.1 6379 10.0.0.2",
            b"main 10.0.0.1 6379 10.0.0.2 x",
            b"",
        ] {
            assert_eq!(parsed.announced(other), None);
        }
        assert!(timeout(Duration::ZERO, &mut moved).await.is_err());
        let new = parsed.announced(b"main 10.0.0.1 6379 10.0.0.2 6380");
        assert_eq!(new, Some(("10.0.0.2".to_owned(), 6380)));
        parsed.name(new.clone());
        moved.await;
        // One that was made meanwhile stays.
        let stays = Arc::clone(&parsed).moved_from(new);
        assert!(timeout(Duration::ZERO, stays).await.is_err());
    }
}
