//! The simulation, looked at from outside: a process for each seed, and the fake Redis beside a real one.

mod differential;
mod seeds;
