//! Stories with the client libraries that applications use.

mod clients;
