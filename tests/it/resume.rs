//! Resume (protocol.md 3.2, 4.4, 5.1, 6.1 to 6.4): whoever comes back, by whichever way, is given the bytes that an
//! uninterrupted reader is given, from where it stood; and where that cannot be, it is told so and never skipped.

mod control;
mod cursors;
mod gone;
mod over;

const CHAT_PATH: &str = "/v1/chat/completions";
