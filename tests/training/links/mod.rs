//! Links in files and on ranks: equality with one machine in memory.

mod ranks;
mod stored_events;
