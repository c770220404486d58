//! How much there is of everything, so that the search ends; and which rule is left out, to see that it would find that.

/// The size of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Replicas. The first one has dispatched the request.
    pub replicas: u8,
    /// Events of the whole answer.
    pub events: u8,
    /// Entries that may be staged ahead of what is known to stand.
    pub ahead: u8,
    /// Somebody reads elsewhere, step by step. What is shown at all is looked at without.
    pub reader: bool,
    /// What may go wrong.
    pub faults: Faults,
    /// A rule that does not hold.
    pub without: Option<Rule>,
}

impl Bounds {
    /// Two replicas, an answer of two events, and nothing that goes wrong.
    pub const SMALL: Self = Self {
        replicas: 2,
        events: 2,
        ahead: 2,
        reader: false,
        faults: Faults::NONE,
        without: None,
    };
}

/// How often each fault may happen in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// Requests to the journal without an answer: lost, carried out, or still under way.
    pub unanswered: u8,
    /// Replicas that die, with their engines.
    pub crashes: u8,
    /// Replicas that stand still for longer than a lease, and go on.
    pub pauses: u8,
    /// Failovers that lose a suffix of everything that was written to the journal.
    pub failovers: u8,
    /// The same below connections that stay, so that what is under way arrives there.
    pub fallbacks: u8,
    /// Clients that call stop.
    pub stops: u8,
    /// Offers of a replica that leaves.
    pub offers: u8,
}

impl Faults {
    /// None of them.
    pub const NONE: Self = Self {
        unanswered: 0,
        crashes: 0,
        pauses: 0,
        failovers: 0,
        fallbacks: 0,
        stops: 0,
        offers: 0,
    };
}

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident,)*) => {
        /// What the protocol relies on. Without any of them the search has to find a run that goes wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            /// Each of them.
            pub const ALL: &[Self] = &[$(Self::$rule),*];
        }
    };
}

rules! {
    /// An adoption names the last entry.
    AdoptionNamesTheLast,
    /// An adoption names the writer that it replaces as well.
    AdoptionNamesTheWriter,
    /// Its epoch is one that nobody ever had, also not in a part of the log that was lost.
    EpochIsFresh,
    /// An end names the last entry.
    EndNamesTheLast,
    /// An append of an older epoch is refused.
    AppendIsFenced,
    /// An end of an older epoch is refused.
    EndIsFenced,
    /// Nor does a higher one end what it has not adopted.
    EndNamesItsEpoch,
    /// An end is sent only when its predecessor was seen to stand.
    EndIsSeen,
    /// Nor is it taken behind a record that has no place.
    EndHasItsPlace,
    /// What has been taken behind another writer's entries has no place.
    PlaceNamesTheWriter,
    /// Nothing follows a terminal.
    EndIsFinal,
    /// After an outcome that is unknown, what stands is read back.
    UnknownIsReadBack,
    /// What is read back is compared with what was sent.
    ReadBackIsCompared,
    /// A failover makes writers read back before they append.
    NewConnectionIsReadBack,
    /// What was appended behind a gap is taken back.
    GapIsTakenBack,
    /// So is more than one record that has no place.
    SeveralHaveNoPlace,
    /// Not only by the writer that has appended it, which may be dead.
    GapIsAnybodys,
    /// A hand-over adopts only from where the seam was verified.
    SeamIsTheLast,
    /// A whole answer is ended as done, a part never.
    DoneIsWhole,
    /// A writer that was refused writes nothing more.
    FencedIsOver,
    /// A silent writer is judged dead at last.
    SilentIsJudged,
    /// Whoever the log names as its writer, and does not write it, adopts it.
    NamedWriterIsAsked,
    /// A writer that has offered reads on when nobody takes it.
    OfferLapses,
    /// A follower refuses what replaces what it has shown.
    FollowerCompares,
    /// It refuses a change of the writer that follows another epoch than the one it has shown.
    MarkNamesWhatItFollows,
    /// It also refuses an end that lies within what it has shown.
    FollowerKnowsItsEnd,
    /// A cursor names the epoch of its entry.
    CursorNamesEpoch,
    /// An end that was lost is written again, or the generation ended otherwise.
    EndIsLookedAfter,
}
