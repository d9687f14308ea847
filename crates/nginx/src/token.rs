//! The tokens of a configuration: words, with or without quotes, and the signs between them.
//!
//! As nginx has it (`ngx_conf_read_token`): quotes and comments begin where a word could begin, a word ends at a blank,
//! `;` or `{`, and `${` is no block. A backslash makes the next character a part of the word; it goes in front of a
//! quote, a backslash or a letter for a control character, and stays in front of anything else, so that patterns need
//! no second one.

use std::sync::Arc;

use crate::place::{SourcePosition, SyntaxError};

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A word, without its quotes.
    Word(String),
    /// `;`
    End,
    /// `{`
    Open,
    /// `}`
    Close,
}

/// Reads tokens from a text.
pub(crate) struct Tokens<'a> {
    file: Arc<str>,
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
    column: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(file: &str, text: &'a str) -> Self {
        Self { file: file.into(), rest: text.chars().peekable(), line: 1, column: 1 }
    }

    pub(crate) fn here(&self) -> SourcePosition {
        SourcePosition { file: Arc::clone(&self.file), line: self.line, column: self.column }
    }

    /// The next token and its place; `None` at the end of the text.
    ///
    /// # Errors
    /// If a quote does not end, or something follows it at once.
    pub(crate) fn next(&mut self) -> Result<Option<(SourcePosition, Token)>, SyntaxError> {
        self.skip_blanks_and_comments();
        let place = self.here();
        let token = match self.rest.peek().copied() {
            None => return Ok(None),
            Some(';') => self.sign(Token::End),
            Some('{') => self.sign(Token::Open),
            Some('}') => self.sign(Token::Close),
            Some(quote @ ('"' | '\'')) => self.quoted(quote, &place)?,
            Some(_) => Token::Word(self.plain()),
        };
        Ok(Some((place, token)))
    }

    /// Skips what is between a `{`, which has been read, and its `}`: a program in another language.
    ///
    /// # Errors
    /// If there is no end of it.
    pub(crate) fn skip_program(&mut self) -> Result<(), SyntaxError> {
        let place = self.here();
        let mut depth = 1_usize;
        while let Some(character) = self.step() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err(SyntaxError { place, what: "this block does not end" })
    }

    fn skip_blanks_and_comments(&mut self) {
        while let Some(character) = self.rest.peek() {
            match character {
                ' ' | '\t' | '\r' | '\n' | '\u{feff}' => {
                    self.step();
                }
                '#' => while self.step().is_some_and(|character| character != '\n') {},
                _ => return,
            }
        }
    }

    fn step(&mut self) -> Option<char> {
        let character = self.rest.next()?;
        if character == '\n' {
            (self.line, self.column) = (self.line + 1, 1);
        } else {
            self.column += 1;
        }
        Some(character)
    }

    fn sign(&mut self, token: Token) -> Token {
        self.step();
        token
    }

    fn quoted(&mut self, quote: char, place: &SourcePosition) -> Result<Token, SyntaxError> {
        self.step();
        let mut word = String::new();
        loop {
            match self.step() {
                None => return Err(SyntaxError { place: place.clone(), what: "this quote does not end" }),
                Some('\\') => self.escaped(&mut word),
                Some(character) if character == quote => break,
                Some(character) => word.push(character),
            }
        }
        match self.rest.peek() {
            None | Some(' ' | '\t' | '\r' | '\n' | ';' | '{' | ')') => Ok(Token::Word(word)),
            Some(_) => Err(SyntaxError { place: self.here(), what: "a blank or `;` must follow the quote" }),
        }
    }

    fn plain(&mut self) -> String {
        let mut word = String::new();
        while let Some(character) = self.rest.peek().copied() {
            match character {
                ' ' | '\t' | '\r' | '\n' | ';' => break,
                '{' if !word.ends_with('$') => break,
                _ => {}
            }
            self.step();
            match character {
                '\\' => self.escaped(&mut word),
                _ => word.push(character),
            }
        }
        word
    }

    /// What a backslash that has been read stands for, together with the next character.
    fn escaped(&mut self, word: &mut String) {
        match self.step() {
            Some(character @ ('"' | '\'' | '\\')) => word.push(character),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some('n') => word.push('\n'),
            Some(other) => word.extend(['\\', other]),
            None => word.push('\\'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut tokens = Tokens::new("t", text);
        std::iter::from_fn(|| tokens.next().unwrap())
            .map(|(place, token)| match token {
                Token::Word(word) => format!("{}:{} {word}", place.line, place.column),
                Token::End => ";".into(),
                Token::Open => "{".into(),
                Token::Close => "}".into(),
            })
            .collect()
    }

    #[test]
    fn words_end_where_nginx_ends_them() {
        for (text, expected) in [
            ("a b;", vec!["1:1 a", "1:3 b", ";"]),
            ("a{b;}", vec!["1:1 a", "{", "1:3 b", ";", "}"]),
            ("a ${b}c;", vec!["1:1 a", "1:3 ${b}c", ";"]),
            ("a b#c; # d\ne", vec!["1:1 a", "1:3 b#c", ";", "2:1 e"]),
            (r#"a "b c;{" 'd"';"#, vec!["1:1 a", "1:3 b c;{", "1:11 d\"", ";"]),
            (
                r#"a "b\"c" \.php$ 'x\ty\.\\';"#,
                vec!["1:1 a", "1:3 b\"c", "1:10 \\.php$", "1:17 x\ty\\.\\", ";"],
            ),
            ("a b\\;c;", vec!["1:1 a", "1:3 b\\;c", ";"]),
            ("if ($a = \"b\") {}", vec!["1:1 if", "1:4 ($a", "1:8 =", "1:10 b", "1:13 )", "{", "}"]),
            ("é\r\n x;", vec!["1:1 é", "2:2 x", ";"]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn quotes_end_and_are_words_of_their_own() {
        for (text, place) in [("a\n \"b", "t:2:2"), ("a 'b'c;", "t:1:6"), ("'", "t:1:1")] {
            let mut tokens = Tokens::new("t", text);
            let error = loop {
                match tokens.next() {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("{text} was read"),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.place.to_string(), place, "{text}");
        }
    }
}
