//! How an application may answer: the word in the query of a request, and what the model knows of it.

use baton_upstream::Protocol;

use crate::cached::CACHED;
use crate::site::SiteFile;

/// How an application answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// With a head that has the length.
    Whole,
    /// With a head that does not.
    Open,
    /// With a status of its own.
    Missing,
    /// With lines for the error log besides.
    Talking,
    /// With more than the head announces.
    Long,
    /// With less than the head announces.
    Short,
    /// With a part, and then the end of the connection.
    Cut,
    /// The same without a length in the head.
    OpenCut,
    /// With a head, and then the end of the connection.
    HeadOnly,
    /// With the end of the connection.
    Gone,
    /// Not at all.
    Never,
    /// With a refusal.
    Overloaded,
    /// With bytes that are not FastCGI.
    Nonsense,
    /// With a malformed head.
    NoHead,
    /// Before it has read the body.
    Early,
    /// With a path of the same site.
    Redirect,
    /// With the path of a file.
    SendFile,
    /// With the location of a file.
    AccelRedirect,
    /// With text and the paths of two files in it.
    ZeroCopy,
    /// With the path of a file that is not there.
    NamesNothing,
    /// With the path of a file that it may not name.
    NamesOutside,
    /// With a path that leaves the folder of the files that it may name.
    ClimbsOut,
    /// With the path of a symbolic link out of that folder.
    FollowsOut,
    /// With text, and in it the path of a file that it may not name.
    ZeroCopyOutside,
    /// With text, and in it the path of a file that is not there.
    ZeroCopyNothing,
    /// Through its region, if it has one, with slices that it may not announce. It returns more of a body than it was lent.
    LiesOfMemory,
    /// With more bytes, or less, than it says to have sent, if it answers on the client's socket.
    ClaimsMore,
    ClaimsLess,
    /// With all of the answer, of which it says that it is a part, if it answers on the client's socket.
    ClaimsPart,
    /// With all of the answer, but a child keeps the client's socket, if it has that.
    KeepsSocket,
    /// By a child that has the client's socket, if it has that, when the process has ended.
    DiesHolding,
    /// With text, and paths in it that would be behind its end.
    ZeroCopyBeyond,
    /// As the resource of a cached route that has this number.
    Cached,
}

impl Manner {
    const ALL: [Self; 32] = [
        Self::Whole,
        Self::Open,
        Self::Missing,
        Self::Talking,
        Self::Long,
        Self::Short,
        Self::Cut,
        Self::OpenCut,
        Self::HeadOnly,
        Self::Gone,
        Self::Never,
        Self::Overloaded,
        Self::Nonsense,
        Self::NoHead,
        Self::Early,
        Self::Redirect,
        Self::SendFile,
        Self::AccelRedirect,
        Self::ZeroCopy,
        Self::NamesNothing,
        Self::NamesOutside,
        Self::ClimbsOut,
        Self::FollowsOut,
        Self::ZeroCopyOutside,
        Self::ZeroCopyNothing,
        Self::ZeroCopyBeyond,
        Self::LiesOfMemory,
        Self::ClaimsMore,
        Self::ClaimsLess,
        Self::ClaimsPart,
        Self::KeepsSocket,
        Self::DiesHolding,
    ];

    /// Those of an application that speaks like this.
    pub(crate) fn of(protocol: Protocol) -> Vec<Self> {
        // SCGI has neither an error stream nor refusals, and an answer ends with its connection.
        let is_fastcgi_only =
            |manner: &Self| matches!(manner, Self::Talking | Self::Overloaded | Self::OpenCut);
        // An origin has none of these either, nor does the server do anything for it.
        let is_of_origins = |manner: &Self| {
            let is_for_cgi = manner.names_files() || manner.is_of_offers();
            !is_for_cgi && !matches!(manner, Self::Talking | Self::Overloaded | Self::Redirect)
        };
        let speaks = |manner: &Self| match protocol {
            Protocol::FastCgi => true,
            Protocol::Scgi => !is_fastcgi_only(manner),
            Protocol::Http1 => is_of_origins(manner),
        };
        Self::ALL.into_iter().filter(speaks).collect()
    }

    /// Whether it matters only to an application that takes offers up.
    pub(crate) fn is_of_offers(self) -> bool {
        use Manner::{ClaimsLess, ClaimsMore, ClaimsPart, DiesHolding, KeepsSocket, LiesOfMemory};
        matches!(self, LiesOfMemory | ClaimsMore | ClaimsLess | ClaimsPart | KeepsSocket | DiesHolding)
    }

    /// The manner with this name.
    pub(super) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|manner| format!("{manner:?}") == word)
    }

    /// The status of the client's answer, if that is complete.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Whole | Self::Open | Self::Talking | Self::Long | Self::Early | Self::Redirect => 200,
            Self::Cached => 200,
            Self::SendFile | Self::AccelRedirect | Self::ZeroCopy => 200,
            Self::LiesOfMemory | Self::KeepsSocket | Self::DiesHolding => 200,
            Self::ClaimsMore | Self::ClaimsLess | Self::ClaimsPart => 200,
            _ if self.is_of_offers() => 200,
            Self::Missing | Self::NamesNothing | Self::ClimbsOut | Self::FollowsOut => 404,
            Self::Overloaded => 503,
            Self::Never => 504,
            Self::Short | Self::Cut | Self::OpenCut | Self::HeadOnly | Self::Gone => 502,
            Self::Nonsense | Self::NoHead => 502,
            Self::NamesOutside | Self::ZeroCopyOutside | Self::ZeroCopyNothing | Self::ZeroCopyBeyond => 502,
        }
    }

    /// Whether a complete answer with [that status](Self::status) is the server's, because the application failed.
    pub(crate) fn fails(self) -> bool {
        !matches!(self.status(), 200) && self != Self::Missing
    }

    /// Whether the application answers when it has read the whole request, and completely.
    pub(crate) fn is_orderly(self) -> bool {
        use Manner::{Early, Redirect};
        !matches!(self, Early | Redirect) && (!self.fails() || self.names_files())
    }

    /// Whether the answer names files.
    pub(crate) fn names_files(self) -> bool {
        use Manner::{AccelRedirect, ClimbsOut, FollowsOut, NamesNothing, NamesOutside};
        use Manner::{SendFile, ZeroCopy, ZeroCopyBeyond, ZeroCopyNothing, ZeroCopyOutside};
        matches!(self, SendFile | AccelRedirect | NamesNothing | NamesOutside | ClimbsOut | FollowsOut)
            || matches!(self, ZeroCopy | ZeroCopyOutside | ZeroCopyNothing | ZeroCopyBeyond)
    }
}

/// What a request asks the application for. It is the query of the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query {
    pub(crate) number: usize,
    /// Bytes of content behind its first line.
    pub(crate) len: usize,
    pub(crate) manner: Manner,
}

impl Query {
    /// As it stands in a request.
    pub(crate) fn write(self) -> String {
        let Self { number, len, manner } = self;
        format!("{number}&{len}&{manner:?}")
    }

    /// What is asked with this path and this query.
    pub(super) fn read(path: &str, query: &str) -> Self {
        if let Some(name) = path.strip_prefix(CACHED) {
            let number =
                name.trim_start_matches('/').strip_suffix(".ts").and_then(|number| number.parse().ok());
            return Self { number: number.expect("a number"), len: 0, manner: Manner::Cached };
        }
        let mut parts = query.split('&');
        let mut next = || parts.next().unwrap_or_else(|| panic!("not of ours: {query:?}"));
        let (number, len, word) = (next().parse().unwrap(), next().parse().unwrap(), next());
        Self { number, len, manner: Manner::named(word).expect("a manner") }
    }

    /// The application's own content, which both ends of the simulation compute.
    pub(crate) fn content(self, method: &str, body: &[u8]) -> Vec<u8> {
        let sum = body.iter().fold(0_u32, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let mut content = format!("{} {method} {} {sum}\n", self.number, body.len()).into_bytes();
        let start = content.len();
        content.resize(start + self.len, 0);
        fastrand::Rng::with_seed(self.number as u64).fill(&mut content[start..]);
        content
    }

    /// The file that the answer names; a second one follows it.
    pub(crate) fn file(self, files: &[SiteFile]) -> (&SiteFile, &SiteFile) {
        (&files[self.number % files.len()], &files[(self.number + 1) % files.len()])
    }
}

/// Where [`Manner::Redirect`] leads to.
pub(crate) const REDIRECTED_TO: &str = "/small.txt";
