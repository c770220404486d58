//! A backend dies, and the answer goes on elsewhere, or says honestly why not.

mod cuts;
mod examined;
