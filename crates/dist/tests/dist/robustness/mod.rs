//! Killed writers, full disks, damaged files, and many threads at once.

mod faults;
mod fuzz;
mod stress;
