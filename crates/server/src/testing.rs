//! What unit tests of several modules begin with.

use std::sync::Arc;
use std::time::SystemTime;

use streamweld_dialect::Dialect;
use streamweld_generation::{Access, CredentialHeaders, Handle, OrphanPolicy, Spec};
use streamweld_journal::{Epoch, StreamId, Window, WindowConfig};

/// A candidate that nobody has dispatched.
pub(crate) fn candidate() -> Arc<Handle> {
    let created = SystemTime::now();
    let id = StreamId::generate(created);
    let spec = Spec {
        id,
        dialect: Dialect::Generic,
        model: None,
        access: Access::of(&CredentialHeaders::default(), |_| []),
        policy: OrphanPolicy::Continue,
        request_id: String::new(),
        created,
        retry: None,
    };
    let window = Window::new(id, Epoch::FIRST, created, WindowConfig::default());
    Handle::new(spec, window)
}
