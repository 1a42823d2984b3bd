//! The command-line tool; everything is in the library's `cli` room.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(drivethru::cli::main())
}
