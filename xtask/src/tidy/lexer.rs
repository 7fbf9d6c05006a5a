//! Rust source with comments and literals blanked out, so that words in prose are not taken for code. It refuses to
//! parse: lines and columns stay where they are.

/// The code of a source file; everything else is spaces.
pub(crate) fn code_only(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let end = end_of_literal(&chars, at);
        if end == at {
            out.push(c);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Where the comment or literal that begins at `at` ends; `at` itself: none begins here.
fn end_of_literal(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match (chars[at], next) {
        ('/', Some('/')) => until(chars, at, |rest| rest[0] == '\n'),
        ('/', Some('*')) => end_of_block_comment(chars, at),
        ('"', _) => end_of_string(chars, at),
        ('r', Some('"' | '#')) if !is_word(chars, at) => end_of_raw_string(chars, at),
        ('\'', Some('\\')) => until(chars, at + 3, |rest| rest[0] == '\'') + 1,
        ('\'', Some(_)) if chars.get(at + 2) == Some(&'\'') => at + 3,
        _ => at,
    }
    .min(chars.len())
}

fn until(chars: &[char], from: usize, ends: impl Fn(&[char]) -> bool) -> usize {
    (from..chars.len()).find(|at| ends(&chars[*at..])).unwrap_or(chars.len())
}

fn is_word(chars: &[char], at: usize) -> bool {
    at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_')
}

fn end_of_block_comment(chars: &[char], at: usize) -> usize {
    let mut depth = 0usize;
    let mut here = at;
    while here < chars.len() {
        match (chars[here], chars.get(here + 1)) {
            ('/', Some('*')) => (depth, here) = (depth + 1, here + 2),
            ('*', Some('/')) => (depth, here) = (depth - 1, here + 2),
            _ => here += 1,
        }
        if depth == 0 {
            return here;
        }
    }
    here
}

fn end_of_string(chars: &[char], at: usize) -> usize {
    let mut here = at + 1;
    while here < chars.len() {
        match chars[here] {
            '\\' => here += 2,
            '"' => return here + 1,
            _ => here += 1,
        }
    }
    here
}

fn end_of_raw_string(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    let quote = at + 1 + hashes;
    if chars.get(quote) != Some(&'"') {
        return at;
    }
    let closes =
        |rest: &[char]| rest[0] == '"' && rest[1..].iter().take_while(|c| **c == '#').count() >= hashes;
    until(chars, quote + 1, closes) + 1 + hashes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_blank_and_code_stays() {
        let source = "let a = \"kube\"; // kube\n/* kube /* x */ */ let b = r#\"kube\"#; let c = '\"'; kube(b'x', '\\n');";
        let code = code_only(source);
        assert_eq!(code.matches("kube").count(), 1, "{code}");
        assert_eq!(code.lines().count(), 2);
        assert_eq!(code.chars().count(), source.chars().count());
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        for source in ["fn f<'a>(x: &'a str) {}", "let r#type = 1;", "for r in list {}"] {
            assert_eq!(code_only(source), source);
        }
    }
}
