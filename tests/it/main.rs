//! Stories over real sockets, one module for each capability.

mod first;
