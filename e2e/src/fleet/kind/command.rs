//! Other people's programs: docker, kind, helm, kubectl. It refuses to hide what a program said when it failed.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

/// How much of a failed program's last words is shown.
const SHOWN: usize = 20;

/// Runs a program to its end and gives its standard output.
///
/// # Errors
/// It is not there, or it failed: the error has the last lines that it wrote.
pub(super) fn output(program: &str, arguments: &[&str]) -> Result<String> {
    run(Command::new(program).args(arguments), "")
}

/// The same with `input` on its standard input, and `kubeconfig` as the only cluster that it knows.
///
/// # Errors
/// As [`output`].
pub(super) fn at(kubeconfig: &Path, program: &str, arguments: &[&str], input: &str) -> Result<String> {
    run(Command::new(program).args(arguments).env("KUBECONFIG", kubeconfig), input)
}

pub(super) fn run(command: &mut Command, input: &str) -> Result<String> {
    let shown = shown(command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {shown}"))?;
    let stdin = child.stdin.take();
    // On a thread of its own: a program that writes before it has read all would block for ever.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        child.wait_with_output()
    })
    .with_context(|| format!("waiting for {shown}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = words.lines().collect();
        let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
        bail!("{shown} failed ({}):\n{last}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("reading the answer of {shown}"))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).take(4).collect();
    format!("`{} …`", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_program_is_named_with_what_it_said() {
        let error = output("sh", &["-c", "echo no such cluster >&2; exit 3"]).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("`sh -c") && text.contains("no such cluster") && text.contains('3'), "{text}");
        assert!(format!("{:#}", output("spanwire-no-such", &[]).unwrap_err()).contains("spanwire-no-such"));
    }

    #[test]
    fn large_input_and_output_do_not_block_each_other() {
        let input = "x".repeat(1 << 20);
        assert_eq!(run(&mut Command::new("cat"), &input).unwrap(), input);
    }
}
