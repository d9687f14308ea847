//! The requests for the applications.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

use crate::comparison::Task;
use crate::load::LoadRequest;

/// One length of response, from one kind of program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// 32 KB from the C program.
    #[value(name = "32k")]
    C32k,
    /// 128 KB.
    #[value(name = "128k")]
    C128k,
    /// 1 MB.
    #[value(name = "1m")]
    C1m,
    /// 4 MB.
    #[value(name = "4m")]
    C4m,
    /// 32 KB from the C program, made where the library sends it from.
    #[value(name = "32k-in-place")]
    InPlace32k,
    /// 128 KB, made in place.
    #[value(name = "128k-in-place")]
    InPlace128k,
    /// 1 MB, made in place.
    #[value(name = "1m-in-place")]
    InPlace1m,
    /// 4 MB, made in place.
    #[value(name = "4m-in-place")]
    InPlace4m,
    /// 60 KB from php-fpm: a file as a string, put out.
    #[value(name = "php-60k")]
    Php60k,
    /// 1 MB from php-fpm.
    #[value(name = "php-1m")]
    Php1m,
}

impl Response {
    pub(super) fn is_php(self) -> bool {
        matches!(self, Self::Php60k | Self::Php1m)
    }

    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::C32k | Self::InPlace32k => 32 << 10,
            Self::C128k | Self::InPlace128k => 128 << 10,
            Self::C1m | Self::InPlace1m | Self::Php1m => 1 << 20,
            Self::C4m | Self::InPlace4m => 4 << 20,
            Self::Php60k => 60 << 10,
        }
    }
}

impl Task for Response {
    /// As many as there are processes of the application: more would wait for each other there.
    fn connections(self) -> usize {
        PROCESSES
    }

    fn requests(self) -> Vec<LoadRequest> {
        let bytes = self.bytes();
        let path = match self {
            Self::Php60k | Self::Php1m => format!("/file.php?kb={}", bytes >> 10),
            Self::InPlace32k | Self::InPlace128k | Self::InPlace1m | Self::InPlace4m => {
                format!("/app/ad?in-place={bytes}")
            }
            Self::C32k | Self::C128k | Self::C1m | Self::C4m => format!("/app/ad?bytes={bytes}"),
        };
        vec![LoadRequest::page(path, Some(bytes))]
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::C32k => "32 KB",
            Self::C128k => "128 KB",
            Self::C1m => "1 MB",
            Self::C4m => "4 MB",
            Self::InPlace32k => "32 KB, made in place",
            Self::InPlace128k => "128 KB, made in place",
            Self::InPlace1m => "1 MB, made in place",
            Self::InPlace4m => "4 MB, made in place",
            Self::Php60k => "60 KB from php-fpm",
            Self::Php1m => "1 MB from php-fpm",
        })
    }
}

/// Processes of an application, and connections that ask.
pub(crate) const PROCESSES: usize = 8;
