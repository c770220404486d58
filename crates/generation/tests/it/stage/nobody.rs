//! Backends of which none can go on, and what happens at the very moment when one is looked for.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use streamweld_generation::lifecycle::By;
use streamweld_generation::migration::{Backends, Bounds, Candidate, Later, Policy, Within};
use streamweld_generation::{Handle, Leg};

/// Nobody is there. Whoever looks is stopped at that moment, if so wished.
pub(super) struct Nobody {
    pub(super) handle: Arc<Handle>,
    pub(super) stops: bool,
}

impl<S> Backends<S> for Nobody {
    fn pick(&self, _: &Leg, _: Within, _: &[u64]) -> Option<Box<dyn Candidate<S>>> {
        if self.stops {
            self.handle.stop(By::Client);
        }
        None
    }

    fn is_drained(&self, _: &Leg) -> bool {
        false
    }

    fn changed(&self) -> Later<()> {
        Box::pin(std::future::pending())
    }

    fn request(&self) -> Option<Bytes> {
        Some(Bytes::from_static(b"{}"))
    }

    fn forget_request(&self) {}

    fn bounds(&self) -> Bounds {
        Bounds {
            attempts: NonZeroU32::MIN,
            moves: 1,
            wait: Duration::ZERO,
            begin: Duration::from_secs(1),
        }
    }
}

/// An attempt that another backend may go on with.
pub(super) fn leg() -> Leg {
    Leg {
        backend: Arc::from("a"),
        member: 1,
        group: Some(Arc::from("g")),
        policy: Policy::Exact,
        engine: None,
        added: None,
    }
}
