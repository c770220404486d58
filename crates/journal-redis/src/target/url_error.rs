//! Why a URL is none of a Redis.

/// Why the URL of a Redis was refused, in words for whoever wrote it. It never repeats the URL, which may hold a
/// password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// Not a URL.
    #[error("not a valid URL; what is not a letter or a digit in a password is written as %40")]
    Syntax,
    /// A file without anything in it.
    #[error("the file is empty")]
    Empty,
    /// A file with more than a URL.
    #[error("the file has to hold one line, with the URL")]
    Lines,
    /// A file with bytes that no text has.
    #[error("the file does not hold plain text")]
    NoText,
    /// None that is known.
    #[error(
        "the scheme must be redis, or rediss for TLS, with +sentinel or +cluster behind it where that is meant, or \
         redis+unix"
    )]
    Scheme,
    /// No host.
    #[error("there is no host")]
    Host,
    /// No port that there is.
    #[error("the port must be a number from 1 to 65535")]
    Port,
    /// A path that is no number.
    #[error("the path must be the number of a database, or nothing")]
    Database,
    /// Sentinels without the name of what they watch over.
    #[error("behind the sentinels there must be the name of the service that they watch over")]
    Service,
    /// A path, for a cluster.
    #[error("a cluster has no databases, so there is no path")]
    Cluster,
    /// No path where a socket could be.
    #[error("behind redis+unix:// there must be the whole path of a socket, which begins with /")]
    Socket,
    /// A query that is not about the socket.
    #[error("the query may hold db, user and pass only, and db is the number of a database")]
    SocketQuery,
    /// A query, which nothing would look at.
    #[error("a query has no meaning here")]
    Query,
    /// A query that is not about the sentinels.
    #[error(
        "the query may hold sentinel_user and sentinel_pass only, and in them what is not a letter or a digit is \
         written as %40"
    )]
    SentinelQuery,
    /// A fragment, which nothing would look at.
    #[error("a fragment has no meaning here; in a password write # as %23")]
    Fragment,
}
