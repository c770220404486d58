//! How calls and connections fail. Neither names an address nor holds what the server was told.

use std::fmt;
use std::io;

use redis::{ErrorKind, RedisError, ServerError};

/// Why a call has no answer to give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// There was no connection: nothing has happened.
    #[error("no connection to redis")]
    NotSent,
    /// It was given to a connection and no answer came: it may or may not have happened, or happen yet.
    #[error("no answer from redis")]
    Unanswered,
    /// The server said no: nothing has happened.
    #[error("redis said {0}")]
    Refused(Code),
}

/// The first word of an error that a server answers with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Code(String);

impl Code {
    pub(crate) fn new(code: &str) -> Self {
        // A script's error may begin with any word; what is logged is short and plain.
        let plain = code.chars().filter(char::is_ascii_alphanumeric);
        Self(plain.take(32).collect())
    }

    pub(crate) fn of(error: &ServerError) -> Self {
        Self::new(error.code())
    }

    pub(crate) fn is(&self, code: &str) -> bool {
        self.0 == code
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Why there is no connection to Redis. It names neither the address nor the credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The socket, the name lookup or TLS failed.
    #[error("redis cannot be reached: {0}")]
    Io(io::ErrorKind),
    /// No answer within the time that connecting may take.
    #[error("redis did not answer in time")]
    TimedOut,
    /// The server wants other credentials than it was given, or any.
    #[error("redis refuses the user or password")]
    Credentials,
    /// The server wants no password, and was given one: it is not set up as it should be, or not the right one.
    #[error("redis has no password, but one was given")]
    NoPassword,
    /// The server has no database of the number that was asked for.
    #[error("redis has no database of this number")]
    NoDatabase,
    /// The file with the password cannot be read.
    #[error("the file with the password for redis cannot be read: {0}")]
    PasswordFile(io::ErrorKind),
    /// The file with certificates to trust cannot be read, or holds none that can be used.
    #[error("the file with certificates for redis cannot be used: {0}")]
    CaFile(io::ErrorKind),
    /// None of the sentinels says where the master is.
    #[error("no sentinel answers")]
    NoSentinel,
    /// The sentinels want other credentials than they were given, or any.
    #[error("the sentinels refuse the user or password")]
    SentinelCredentials,
    /// The sentinels watch over no service of this name.
    #[error("the sentinels know no service of this name")]
    UnknownService,
    /// What the sentinels name says that it is a replica: they do not know better yet, or it does not.
    #[error("what the sentinels name is not the master yet")]
    NotMaster,
    /// The sentinels name another master than the one that the connection led to.
    #[error("the sentinels name another master")]
    Moved,
    /// The server has as many connections as it may have.
    #[error("redis has no room for another connection")]
    TooManyClients,
    /// The server refuses for another reason, told by its word.
    #[error("redis refuses the connection: {0}")]
    Refused(String),
    /// What answers does not speak the protocol, or not this kind of connection.
    #[error("what answers is not a redis server that can be used")]
    Unusable,
}

impl From<RedisError> for ConnectError {
    fn from(error: RedisError) -> Self {
        match error.kind() {
            ErrorKind::AuthenticationFailed => Self::Credentials,
            _ if error.is_timeout() => Self::TimedOut,
            ErrorKind::Io => {
                let source = std::error::Error::source(&error);
                let io = source.and_then(|it| it.downcast_ref::<io::Error>());
                Self::Io(io.map_or(io::ErrorKind::Other, io::Error::kind))
            }
            _ => match (error.code(), error.detail().and_then(Self::of_detail)) {
                (_, Some(known)) => known,
                (Some(code), None) => Self::from(Code::new(code)),
                (None, None) => Self::Unusable,
            },
        }
    }
}

impl From<&ServerError> for ConnectError {
    fn from(error: &ServerError) -> Self {
        let known = error.details().and_then(Self::of_detail);
        known.unwrap_or_else(|| Code::of(error).into())
    }
}

impl ConnectError {
    /// Those whose word is that of any error.
    fn of_detail(detail: &str) -> Option<Self> {
        let known = [
            ("max number of clients", Self::TooManyClients),
            ("without any password configured", Self::NoPassword),
            ("DB index is out of range", Self::NoDatabase),
        ];
        let is_it = |(text, _): &(&str, Self)| detail.contains(text);
        known.into_iter().find(is_it).map(|(_, error)| error)
    }
}

impl From<Code> for ConnectError {
    fn from(code: Code) -> Self {
        if code.is("NOAUTH") || code.is("WRONGPASS") {
            Self::Credentials
        } else {
            Self::Refused(code.0)
        }
    }
}
