//! A backend dies, and the answer goes on elsewhere, or says honestly why not (protocol.md 8.7, 8.8).

mod alone;
mod answer;
mod backends;
mod beginning;
mod credentials;
mod cuts;
mod drain;
mod examined;
mod gates;
mod kept;
mod leak;
mod meanwhile;
mod messages;
mod ordered;
mod random;
mod requests;
mod rows;
mod seams;
mod served;
mod silence;
mod story;
mod told;
mod unseen;
