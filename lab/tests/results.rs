//! No figure without its lines: the documents show what recorded runs give, and what is not so is found.

use std::fs;
use std::path::{Path, PathBuf};

use baton_lab::results;

#[test]
fn the_documents_show_what_the_recorded_lines_give() {
    let problems = results::problems(results::repository()).unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

const MANIFEST: &str = r#"{"experiment": "log", "commit": "0123abcd", "file_sha256": "00", "rounds": 7, "seconds": 1.0, "settings": [],
"programs": [], "machine": "a machine", "seed": 1999, "started": 1764288000, "load_average": 0.1}"#;

/// Seven rounds of nginx and of Baton, which does 5 % fewer requests with its log.
fn lines() -> String {
    let line = |contender: &str, round: usize, rate_per_cpu: f64| {
        let cpu_us = 1e6 / rate_per_cpu;
        format!(
            "{{\"load\":\"1 KB\",\"contender\":\"{contender}\",\"parameters\":{{\"load\":\"1 KB\",\"contender\":\"{contender}\"}},\
             \"round\":{round},\"measured\":{{\"cpu-us\":{cpu_us}}},\"load_average\":0.1}}\n"
        )
    };
    (0..7).flat_map(|round| [line("baton", round, 1000.0), line("baton with log", round, 950.0)]).collect()
}

const PAGE: &str = "# Figures\n\n<!-- figure: log -->\n<!-- end -->\n";
const ROW: &str = "| E-28 | log-cost | `baton-lab run log` | 3 to 5 % | ours | holds |\n";

struct Root {
    folder: tempfile::TempDir,
}

impl Root {
    /// Documents with a block and a row that nothing has filled yet, and a run that was kept elsewhere.
    fn new() -> Self {
        let root = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(root.path().join("docs")).unwrap();
        root.write("README.md", "# Baton\n");
        root.write("docs/figures.md", PAGE);
        root.write("docs/experiments.md", ROW);
        root
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    fn record(&self) {
        self.write("log.json", MANIFEST);
        self.write("log.jsonl", &lines());
        results::keep(self.path(), self.path(), "log").unwrap();
        assert_eq!(
            results::write(self.path()).unwrap(),
            ["docs/experiments.md", "docs/figures.md"].map(PathBuf::from)
        );
    }
}

#[test]
fn a_recorded_run_fills_its_block_and_its_row() {
    let root = Root::new();
    root.record();
    let page = root.read("docs/figures.md");
    for expected in [
        "`baton-lab run log` on 28 Nov 2025, commit 0123abcd: a machine",
        "| baton with log | 950 |",
        "| yes |",
    ] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert!(
        page.contains("The experiment's file has changed since."),
        "the manifest has another one: {page}"
    );
    assert_eq!(root.read("docs/experiments.md"), ROW.replace("| ours | holds |", "| 0.95 | holds |"));
    assert!(results::problems(root.path()).unwrap().is_empty());
    assert!(results::write(root.path()).unwrap().is_empty(), "once is enough");
}

#[test]
fn what_is_not_recorded_says_so_with_the_command() {
    let root = Root::new();
    results::write(root.path()).unwrap();
    assert!(root.read("docs/figures.md").contains("*Not recorded yet:* `baton-lab run log --record`."));
    assert!(root.read("docs/experiments.md").contains("| not recorded | not recorded |"));
}

#[test]
fn a_number_that_the_lines_do_not_give_is_found() {
    let root = Root::new();
    root.record();
    let (page, row) = (root.read("docs/figures.md"), root.read("docs/experiments.md"));
    root.write("docs/figures.md", &page.replace("| 950 |", "| 999 |"));
    root.write("docs/experiments.md", &row.replace("0.95", "0.99"));
    let found = results::problems(root.path()).unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("docs/experiments.md:1: this row is stale"), "{found:?}");
    assert!(found[1].starts_with("docs/figures.md:3: figure log is stale"), "{found:?}");
    // The other way round: the lines have changed.
    root.write("docs/figures.md", &page);
    root.write("docs/experiments.md", &row);
    let lines = lines().replace(":1052.", ":1111.");
    root.write("docs/results/log.jsonl", &lines);
    assert_eq!(results::problems(root.path()).unwrap().len(), 2);
    root.write("docs/results/log.jsonl", &lines[..lines.len() - 9]);
    let why = results::problems(root.path()).unwrap_err().to_string();
    assert!(why.contains("log.jsonl: 13 of 14 lines are of a run"), "{why}");
}

#[test]
fn unknown_names_and_loose_numbers_are_found() {
    let root = Root::new();
    root.write("docs/figures.md", &PAGE.replace("log", "logg"));
    let found = results::problems(root.path()).unwrap();
    assert!(
        found.iter().any(|problem| problem.contains("docs/figures.md:3: no recorded run has a figure logg")),
        "{found:?}"
    );
    assert!(results::write(root.path()).unwrap_err().to_string().contains("logg"));
    root.write("docs/figures.md", "| server | µs |\n|---|---|\n| nginx | 6.1 |\n");
    let found = results::problems(root.path()).unwrap();
    assert!(
        found.iter().any(|problem| problem.starts_with("docs/figures.md:1: numbers without lines")),
        "{found:?}"
    );
}

#[test]
fn verdicts_of_the_simulator_fill_their_rows() {
    let root = Root::new();
    root.write("docs/simulator.md", "<!-- figure: simulator -->\n<!-- end -->\n");
    root.write(
        "docs/experiments.md",
        "| E-36 | lard-delay | `baton sim run delay` | a quarter | ours | holds |\n",
    );
    let why = results::keep_simulations(root.path(), root.path()).unwrap_err().to_string();
    assert!(why.contains("no reports; `baton sim run all --out FOLDER`"), "{why}");
    let report = r#"{"name": "delay", "title": "Delay", "runs": [], "claims": [{"published": "a quarter", "ours": "21 %", "verdict": "holds"}]}"#;
    root.write("delay.json", report);
    results::keep_simulations(root.path(), root.path()).unwrap();
    results::write(root.path()).unwrap();
    assert!(root.read("docs/experiments.md").ends_with("| a quarter | 21 % | holds |\n"));
    let page = root.read("docs/simulator.md");
    assert!(
        page.contains("Of 1 statements 1 hold") && page.contains("| `delay` | a quarter | 21 % | yes |"),
        "{page}"
    );
}
