//! What is wanted of a member, by its operator and by DNS.

/// ```text
///           drain                        left
/// Serving ---------> Drained     either ------> Leaving ------> Gone
///         <---------                    <------         idle
///          undrain                       named
/// ```
///
/// `Leaving` keeps whether it was drained, and may be drained and undrained. `Gone` is for ever.
/// Whatever is asked a second time changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Serving,
    Drained,
    Leaving { drained: bool },
    Gone,
}

impl Standing {
    pub(super) fn drain(&mut self) {
        match self {
            Self::Serving => *self = Self::Drained,
            Self::Leaving { drained } => *drained = true,
            Self::Drained | Self::Gone => {}
        }
    }

    pub(super) fn undrain(&mut self) {
        match self {
            Self::Drained => *self = Self::Serving,
            Self::Leaving { drained } => *drained = false,
            Self::Serving | Self::Gone => {}
        }
    }

    /// DNS does not name it any more.
    pub(super) fn left(&mut self) {
        match self {
            Self::Serving => *self = Self::Leaving { drained: false },
            Self::Drained => *self = Self::Leaving { drained: true },
            Self::Leaving { .. } | Self::Gone => {}
        }
    }

    /// DNS names it (again).
    pub(super) fn named(&mut self) {
        match self {
            Self::Leaving { drained: false } => *self = Self::Serving,
            Self::Leaving { drained: true } => *self = Self::Drained,
            Self::Serving | Self::Drained | Self::Gone => {}
        }
    }

    /// Nothing is in flight there.
    pub(super) fn idle(&mut self) {
        match self {
            Self::Leaving { .. } => *self = Self::Gone,
            Self::Serving | Self::Drained | Self::Gone => {}
        }
    }
}
