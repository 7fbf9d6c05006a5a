//! The admin CLI as a plugin of kubectl. It refuses to be anything but the library under this name.

fn main() -> std::process::ExitCode {
    spanwire_ctl::main("kubectl-spanwire")
}
