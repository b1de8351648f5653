//! Prints the tests that were skipped in this run. It has no test harness, which would capture the
//! list. Cargo runs it after the tests of all other packages, see `Cargo.toml`.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().any(|arg| arg == "--list") {
        println!("skipped: test");
        return ExitCode::SUCCESS;
    }
    println!("\n{}", burn_gnn_testutil::take_list());
    match burn_gnn_testutil::check_required() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("{message}");
            ExitCode::FAILURE
        }
    }
}
