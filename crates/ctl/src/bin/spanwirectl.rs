//! The admin CLI. It refuses to be anything but the library under this name.

fn main() -> std::process::ExitCode {
    spanwire_ctl::main("spanwirectl")
}
