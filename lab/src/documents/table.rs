//! What was measured, as lines and as tables.

use std::fmt;

use super::settings::DocumentsSettings;
use super::site;
use crate::markdown::{begin_table, number, row};

/// One second, about.
#[derive(Clone, Debug)]
pub(super) struct Second {
    pub(super) seconds: f64,
    /// Documents that visitors got.
    pub(super) documents: u64,
    /// Redirects that visitors followed.
    pub(super) redirects: u64,
    /// By server.
    pub(super) sent_bytes: Vec<u64>,
}

/// So many servers, measured once.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    pub(super) servers: usize,
    pub(super) seconds: Vec<Second>,
    /// Documents that were lent in the end.
    pub(super) away: u64,
}

impl Figures {
    /// Documents per second in some seconds.
    fn rate(seconds: &[Second]) -> f64 {
        let documents: u64 = seconds.iter().map(|second| second.documents).sum();
        documents as f64 / seconds.iter().map(|second| second.seconds).sum::<f64>().max(f64::MIN_POSITIVE)
    }

    fn begin(&self) -> &[Second] {
        &self.seconds[..self.seconds.len().min(BEGIN)]
    }

    /// The last third.
    fn settled(&self) -> &[Second] {
        &self.seconds[self.seconds.len() * 2 / 3..]
    }

    /// The second from which on what visitors get is within a tenth of what they get in the last third.
    fn settles_after(&self) -> Option<usize> {
        let enough = SETTLED * Self::rate(self.settled());
        (0..self.seconds.len().saturating_sub(BEGIN))
            .find(|begin| Self::rate(&self.seconds[*begin..begin + BEGIN]) >= enough)
    }

    /// Parts of each server of what was sent in the last third.
    fn parts(&self) -> Vec<f64> {
        let sums: Vec<u64> = (0..self.servers)
            .map(|server| self.settled().iter().map(|second| second.sent_bytes[server]).sum())
            .collect();
        let all = sums.iter().sum::<u64>().max(1) as f64;
        sums.into_iter().map(|sum| sum as f64 / all).collect()
    }

    fn redirects(&self) -> f64 {
        let redirects: u64 = self.settled().iter().map(|second| second.redirects).sum();
        let documents: u64 = self.settled().iter().map(|second| second.documents).sum();
        redirects as f64 / documents.max(1) as f64
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} servers: {:.0} documents/s at first, {:.0} in the end; {} lent",
            self.servers,
            Self::rate(self.begin()),
            Self::rate(self.settled()),
            self.away
        )
    }
}

/// Two tables: by number of servers, and by time. The last line tells what most servers do of what one does.
pub(super) fn markdown(machine: &str, settings: &DocumentsSettings, measured: &[Figures]) -> String {
    let mut text = format!(
        "{machine}. The link of each server carries {} Mb/s; {} visitors; {} documents; intervals are {} times shorter than usual. The first \
         {BEGIN} s, and the last third of {} s.\n\n",
        settings.link_mbit,
        settings.visitors,
        site::DOCUMENTS,
        settings.hurry,
        settings.duration.as_secs_f64(),
    );
    let one = measured.iter().find(|figures| figures.servers == 1).map(|it| Figures::rate(it.settled()));
    let to_one = |it: &Figures| one.map(|one| Figures::rate(it.settled()) / one);
    begin_table(&mut text, "servers", &COLUMNS);
    for it in measured {
        let parts: Vec<_> = it.parts().iter().map(|part| format!("{:.0}", part * 100.0)).collect();
        let fields = [
            number(Some(Figures::rate(it.begin())), 0),
            number(Some(Figures::rate(it.settled())), 0),
            number(to_one(it), 2),
            it.settles_after().map_or_else(|| "–".to_owned(), |second| second.to_string()),
            it.away.to_string(),
            number(Some(it.redirects()), 3),
            parts.join(" "),
        ];
        row(&mut text, &it.servers.to_string(), &fields);
    }
    text.push('\n');
    let columns: Vec<_> = measured.iter().map(|it| format!("{} servers", it.servers)).collect();
    begin_table(&mut text, "from second", &columns.iter().map(String::as_str).collect::<Vec<_>>());
    let longest = measured.iter().map(|it| it.seconds.len()).max().unwrap_or_default();
    for begin in (0..longest).step_by(STEP) {
        let rates = measured.iter().map(|it| {
            let seconds = it.seconds.get(begin..it.seconds.len().min(begin + STEP)).unwrap_or_default();
            number((!seconds.is_empty()).then(|| Figures::rate(seconds)), 0)
        });
        row(&mut text, &begin.to_string(), &rates.collect::<Vec<_>>());
    }
    if let Some((most, ratio)) =
        measured.iter().max_by_key(|it| it.servers).and_then(|it| Some((it, to_one(it)?)))
    {
        text += &format!("\nthroughput of {} servers to one: {ratio:.2}\n", most.servers);
    }
    text
}

const COLUMNS: [&str; 7] = [
    "documents/s at first",
    "in the end",
    "to one server",
    "settles after s",
    "lent",
    "redirects per document",
    "% of bytes from each server",
];
/// Seconds that are the beginning.
const BEGIN: usize = 3;
const SETTLED: f64 = 0.9;
/// Seconds of a row.
const STEP: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_spot_settles_when_the_load_is_spread() {
        let figures = |servers, rates: &[u64]| Figures {
            servers,
            away: 3,
            seconds: rates
                .iter()
                .map(|rate| Second {
                    seconds: 1.0,
                    documents: *rate,
                    redirects: 0,
                    sent_bytes: vec![*rate; servers],
                })
                .collect(),
        };
        let one = figures(1, &[100; 12]);
        let two = figures(2, &[100, 100, 100, 120, 150, 190, 200, 200, 200, 200, 200, 200]);
        assert_eq!((one.settles_after(), two.settles_after()), (Some(0), Some(4)));
        assert_eq!(two.parts(), [0.5, 0.5]);
        let settings = DocumentsSettings {
            baton: "baton".into(),
            servers: vec![1, 2],
            visitors: 8,
            link_mbit: 16,
            duration: std::time::Duration::from_secs(12),
            hurry: 40,
            folder: "folder".into(),
        };
        let text = markdown("a machine", &settings, &[one, two]);
        assert!(text.contains("| 2 | 100 | 200 | 2.00 | 4 | 3 | 0.000 | 50 50 |"), "{text}");
        assert!(text.ends_with("\nthroughput of 2 servers to one: 2.00\n"), "{text}");
    }
}
