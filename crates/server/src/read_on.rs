//! A reader whose generation another replica has taken reads on there, on the same connection (protocol.md 8.9).

use std::sync::{Arc, Weak};

use streamweld_generation::{Attached, Durability, Head};
use streamweld_journal::{Cursor, Found, Reader, View};
use tokio::time::timeout;

use crate::app::App;
use crate::attach::{self, Readable};
use crate::caller::Entry;
use crate::elsewhere;
use crate::stream_body::ReadOn;

/// How the readers of one server read on. `None` where nobody could take what it has.
pub(crate) fn read_on(app: &Weak<App>, durability: Durability) -> Option<ReadOn> {
    let here = app.upgrade()?;
    here.shared.journal.replica()?;
    if durability != Durability::Durable {
        return None;
    }
    let app = Weak::clone(app);
    Some(Box::new(move |place, view| {
        let app = app.upgrade();
        Box::pin(async move { find(&app?, place, view).await })
    }))
}

/// Who leaves sends its readers away: they find the others by themselves.
async fn find(app: &Arc<App>, place: Cursor, view: View) -> Option<Attached> {
    if app.is_shutting_down() {
        return None;
    }
    let id = place.stream;
    let handle = app.shared.registry.find(id);
    let handle =
        handle.filter(|it| it.head() == Head::Streaming(Durability::Durable) && !it.is_lost());
    let found = match handle {
        Some(handle) => Readable::here(handle),
        None => match attach::look_up(app, id, place.seq, app.held()).await {
            Ok(Found::Here { window, follow, .. }) => Readable {
                window,
                handle: None,
                follow,
                entry: Entry::Own,
            },
            Ok(Found::Expired { .. } | Found::Unknown) | Err(_) => return None,
        },
    };
    // Nobody writes it yet that is known here.
    if found.window.closed().is_some() {
        return None;
    }
    elsewhere::catch_up(app, &found, place).await.ok()?;
    attach::check(app, &found.window, place, false).await.ok()?;
    let mut reader = Reader::new(Arc::clone(&found.window), place.seq, view);
    timeout(app.settings().edge.hold, reader.prepare())
        .await
        .ok()?
        .ok()?;
    Some(attach::hold(app, found, reader))
}
