//! Runs the program `burn-gnn` on small databases: every command, and every kind of bad input.

mod commands;
mod errors;
mod page;
mod racing;
mod running;
