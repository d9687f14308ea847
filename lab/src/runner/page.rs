//! A page that compresses as pages do: to a quarter or a third.

/// The page, 100 KB of HTML. Its words follow Zipf's law, as those of languages do.
pub(super) fn text() -> String {
    let mut random = fastrand::Rng::with_seed(1948);
    let words: Vec<String> = (0..WORDS).map(|_| word(&mut random)).collect();
    let mut text = String::from("<!doctype html>\n<html lang=\"la\">\n<title>A page</title>\n");
    while text.len() < BYTES {
        text.push_str("<p class=\"text\">");
        for _ in 0..random.usize(20..80) {
            // The rank of a word, so that each power of two is as probable as the next.
            let rank = (WORDS as f64).powf(random.f64()) as usize;
            text.push_str(&words[rank.min(WORDS - 1)]);
            text.push(' ');
        }
        text.push_str("</p>\n");
    }
    text.truncate(BYTES);
    text
}

/// A word of two to four syllables.
fn word(random: &mut fastrand::Rng) -> String {
    let mut letter = |letters: &str| char::from(letters.as_bytes()[random.usize(..letters.len())]);
    let syllables = 2 + usize::from(letter("ab") == 'a') + usize::from(letter("ab") == 'a');
    (0..syllables).flat_map(|_| [letter("bcdfglmnprstv"), letter("aeiou")]).collect()
}

/// As many as a long text has.
const WORDS: usize = 4_000;
const BYTES: usize = 100 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_each_time() {
        assert_eq!(text(), text());
        assert_eq!(text().len(), BYTES);
    }
}
