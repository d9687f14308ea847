//! Experiments do not rot: each runs in cells of a tenth of a second on a tiny site, and `docs/experiments.md` names what is there.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use baton_lab::experiment::Experiment;
use baton_sim::experiments::Experiment as Simulation;

/// Says why something is left out.
fn left_out(why: &str) {
    let _ = writeln!(std::io::stderr(), "LEFT OUT of the experiments: {why}");
}

/// A sixth of them, or all with `BATON_MATRIX=all`. Each in a process of its own, as `run all` does. What a machine lacks is said, and is no failure; a wrong answer is one.
#[test]
fn every_experiment_runs_in_cells_of_a_tenth_of_a_second() {
    let lab = Path::new(env!("CARGO_BIN_EXE_baton-lab"));
    let baton = lab.with_file_name("baton");
    if !baton.is_file() {
        return left_out("they need the server: cargo build -p baton");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut broken = Vec::new();
    let is_whole = std::env::var("BATON_MATRIX").is_ok_and(|matrix| matrix == "all");
    let step = if is_whole { 1 } else { 6 };
    for experiment in Experiment::all().unwrap().into_iter().step_by(step) {
        let name = &experiment.name;
        if LONG.contains(&name.as_str()) {
            left_out(&format!("{name} takes longer than a test may: baton-lab run {name} --quick"));
            continue;
        }
        let output = Command::new(lab)
            .args(["run", name, "--tenth", "--baton"])
            .arg(&baton)
            .arg("--results")
            .arg(folder.path().join("results"))
            .arg("--folder")
            .arg(folder.path().join("lab"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if let Some(what) = ["only root may", "more CPUs than", "libbaton_iolite.so is not built"]
            .into_iter()
            .find(|what| said.contains(what))
        {
            left_out(&format!("{name}: {what} …"));
            continue;
        }
        said.lines().filter(|line| line.contains("left out: ")).for_each(left_out);
        // In a tenth of a second a busy machine may answer nothing.
        let is_wrong = |line: &str| line.contains("FAILED") && !line.contains("nothing was answered in time");
        let is_wrong = said.lines().any(is_wrong);
        if said.contains("no cell could be measured") && !is_wrong {
            left_out(&format!("{name}: this machine has not what its contenders need"));
        } else if is_wrong || !output.status.success() {
            broken.push(format!("{name}: {}\n{said}", output.status));
        } else {
            let lines = fs::read_to_string(folder.path().join(format!("results/{name}.jsonl"))).unwrap();
            assert!(lines.contains("\"measured\""), "{name} has measured nothing");
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

/// Goal: a request for a cached file looks at clocks three times, and twice more in a new second (`docs/system-calls.md`). Method: a worker is stopped after each
/// instruction, and entries into the kernel's code for clocks are counted.
#[test]
fn a_cached_file_costs_three_looks_at_a_clock() {
    let lab = Path::new(env!("CARGO_BIN_EXE_baton-lab"));
    let baton = lab.with_file_name("baton");
    if !baton.is_file() {
        return left_out("looks at clocks need the server: cargo build -p baton");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clock.toml");
    fs::write(&file, CLOCK).unwrap();
    let mut command = Command::new(lab);
    command.arg("run").arg(&file).args(["--tenth", "--baton"]).arg(&baton);
    for flag in ["--results", "--folder"] {
        command.arg(flag).arg(folder.path().join(&flag[2..]));
    }
    let said = String::from_utf8_lossy(&command.output().unwrap().stderr).into_owned();
    if said.contains("only root may") {
        return left_out("looks at clocks: only root may look into a worker");
    }
    let lines = fs::read_to_string(folder.path().join("results/clock.jsonl")).expect(&said);
    // Stepping makes a request so slow that it is often the first in a second.
    let is_one_of = |looks| lines.contains(&format!(r#""clock-looks":{looks}.0"#));
    assert!(is_one_of(3) || is_one_of(5), "{said}\n{lines}");
}

/// Goal: a server is started anew for each load, or once if the file says so. Method: a server that notes its starts.
#[test]
fn servers_are_kept_if_the_file_says_so() {
    let lab = Path::new(env!("CARGO_BIN_EXE_baton-lab"));
    let baton = lab.with_file_name("baton");
    if !baton.is_file() {
        return left_out("servers that are kept need one: cargo build -p baton");
    }
    let starts = |keeps: &str| {
        let folder = tempfile::tempdir().unwrap();
        let kind = folder.path().join("noting.toml");
        fs::write(&kind, NOTING.replace("BATON", &baton.display().to_string())).unwrap();
        let file = folder.path().join("kept.toml");
        fs::write(&file, TWO_LOADS.replace("KEEPS", keeps).replace("KIND", &kind.display().to_string()))
            .unwrap();
        let mut command = Command::new(lab);
        command.arg("run").arg(&file).args(["--tenth", "--baton"]).arg(&baton);
        for flag in ["--results", "--folder"] {
            command.arg(flag).arg(folder.path().join(&flag[2..]));
        }
        let said = String::from_utf8_lossy(&command.output().unwrap().stderr).into_owned();
        let lines = fs::read_to_string(folder.path().join("results/kept.jsonl")).expect(&said);
        assert_eq!(lines.matches("\"measured\"").count(), 2, "{said}\n{lines}");
        fs::read_to_string(folder.path().join("folder/kept/noting/starts")).unwrap().lines().count()
    };
    assert_eq!([starts(""), starts("keep_servers = true")], [2, 1]);
}

/// Each row of the published experiments is there, and each command in it is one that is understood.
#[test]
fn the_document_has_every_row_and_every_command_is_understood() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/experiments.md");
    let text = fs::read_to_string(file).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| E-")).collect();
    let mut numbers: Vec<&str> = rows.iter().map(|row| row.split('|').nth(1).unwrap().trim()).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), ROWS, "{numbers:?}");
    for row in &rows {
        let command = row.split('|').nth(3).unwrap().trim();
        let Some(command) = command.strip_prefix('`').and_then(|command| command.strip_suffix('`')) else {
            assert!(command == "not built" || command == "cannot", "{row}");
            continue;
        };
        let words: Vec<&str> = command.split(' ').collect();
        match words[..] {
            ["baton-lab", "run", name] => {
                Experiment::find(name).unwrap();
            }
            ["baton", "sim", "run", name] => {
                assert!(Simulation::ALL.iter().any(|known| known.name == name), "{row}");
            }
            ["baton", "sim", "cache" | "documents"] => {}
            _ => panic!("{command}: of {row}"),
        }
    }
    // What a file says about its rows, the document says, too.
    for experiment in Experiment::all().unwrap() {
        for number in experiment.rows() {
            let command = format!("`baton-lab run {}`", experiment.name);
            let named = rows.iter().any(|row| row.contains(number.as_str()) && row.contains(&command));
            assert!(named, "{number} has no row with {command}");
        }
    }
}

/// Published experiments of the sources.
const ROWS: usize = 69;
const CLOCK: &str = r#"
title = "looks at clocks"
[[load]]
name = "a cached file"
kind = "stepped"
path = "/1k.html"
[[contender]]
name = "baton"
server = "baton"
set = { "server.architecture" = "sped", "server.watchdog_ms" = 0 }
[[figure]]
y = "clock-looks"
"#;
const NOTING: &str = r#"
title = "a server that notes its starts"
program = "sh"
install = ""
can = ["files"]
arguments = """
-c
echo started >>{{ folder }}/starts; exec BATON serve {{ root }} --listen {{ address }} --control {{ folder }}/control
"""
"#;
const TWO_LOADS: &str = r#"
title = "two loads"
KEEPS
[[load]]
name = "{kb} KB"
sweep.kb = [1, 16]
kind = "closed"
ask = "/{kb}k.html"
[[contender]]
name = "noting"
server = "KIND"
[[figure]]
y = "rate"
"#;
/// A cell is ten thousand single steps of a thread: minutes on a busy machine.
const LONG: [&str; 1] = ["instructions"];
