//! `kanon`, the command line of datafusion-kanon.

use std::process::ExitCode;

fn main() -> ExitCode {
    datafusion_kanon::cli::main()
}
