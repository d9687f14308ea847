//! `baton-lab`: runs experiments and reports them.

mod arguments;

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{self, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser as _;

use baton_figures::Report;
use baton_lab::experiment::Experiment;
use baton_lab::results;
use baton_lab::runner::demo;
use baton_lab::runner::{self, Effort, RunSettings};

use arguments::{Arguments, Command, DemoArguments, PeersArguments, ReportArguments, RunArguments};

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::List { word } => list(word.as_deref()),
        Command::Run(arguments) => run(arguments),
        Command::Report(arguments) => report(arguments),
        Command::Docs { check: true, .. } => check_documents(),
        Command::Docs { simulated, .. } => write_documents(simulated.as_deref()),
        Command::Peers(arguments) => peers(arguments),
        Command::DemoCluster(DemoArguments { baton, seconds, folder }) => {
            demo::run(&baton, &folder, seconds).map(|()| true)
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("baton-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn list(word: Option<&str>) -> Result<bool> {
    for experiment in Experiment::all()? {
        let line = experiment.line() + ", " + &runner::shown_duration(Effort::Full.estimate(&experiment));
        if word.is_none_or(|word| line.to_lowercase().contains(&word.to_lowercase())) {
            print(&format!("{line}\n"))?;
        }
    }
    Ok(true)
}

fn run(arguments: RunArguments) -> Result<bool> {
    let effort = match arguments {
        RunArguments { tenth: true, .. } => Effort::Tenth,
        RunArguments { quick: true, .. } => Effort::Quick,
        _ => Effort::Full,
    };
    let settings = RunSettings { effort, ..arguments.settings };
    let experiments = chosen(&arguments.names)?;
    if arguments.dry_run {
        return say_how_long(&experiments, effort);
    }
    if arguments.record {
        ensure!(
            settings.batons.len() == 1,
            "a recorded run has one build of Baton: give --baton one executable"
        );
        if !arguments.anyway {
            results::may_record()?;
        }
    }
    let ran = match &experiments[..] {
        [experiment] => {
            runner::run(experiment, &settings)?;
            show(&[runner::report(experiment, &settings)?], arguments.page.as_deref(), false)?;
            vec![experiment]
        }
        _ => run_each(&experiments, &settings, arguments.page.as_deref())?,
    };
    if arguments.record {
        for experiment in &ran {
            results::keep(&settings.results, results::repository(), &experiment.name)?;
        }
        write_documents(None)?;
    }
    Ok(ran.len() == experiments.len())
}

fn say_how_long(experiments: &[Experiment], effort: Effort) -> Result<bool> {
    let mut sum = Duration::ZERO;
    for experiment in experiments {
        let estimate = effort.estimate(experiment);
        sum += estimate;
        print(&format!("{:>8}  {}\n", runner::shown_duration(estimate), experiment.name))?;
    }
    print(&format!("{:>8}  in all\n", runner::shown_duration(sum)))?;
    Ok(true)
}

fn write_documents(simulated: Option<&Path>) -> Result<bool> {
    if let Some(folder) = simulated {
        results::keep_simulations(folder, results::repository())?;
    }
    for path in results::write(results::repository())? {
        print(&format!("{}\n", path.display()))?;
    }
    Ok(true)
}

fn check_documents() -> Result<bool> {
    let problems = results::problems(results::repository())?;
    for problem in &problems {
        print(&format!("{problem}\n"))?;
    }
    Ok(problems.is_empty())
}

/// Each in a process of its own: a run changes its process, and what it leaves behind ends with that. Returns those that
/// have succeeded.
fn run_each<'a>(
    experiments: &'a [Experiment],
    settings: &RunSettings,
    page: Option<&Path>,
) -> Result<Vec<&'a Experiment>> {
    let mut ran = Vec::new();
    for experiment in experiments {
        let mut command = process::Command::new(std::env::current_exe()?);
        command.arg("run").arg(&experiment.origin).arg("--results").arg(&settings.results);
        command.arg("--folder").arg(&settings.folder);
        let batons: Vec<_> = settings.batons.iter().map(|baton| baton.display().to_string()).collect();
        command.arg("--baton").arg(batons.join(","));
        for setting in &settings.settings {
            command.arg("--set").arg(setting);
        }
        command.args(match settings.effort {
            Effort::Full => None,
            Effort::Quick => Some("--quick"),
            Effort::Tenth => Some("--tenth"),
        });
        ran.extend(command.status().context("baton-lab run")?.success().then_some(experiment));
    }
    if page.is_some() {
        let reports: Vec<_> =
            experiments.iter().filter_map(|experiment| runner::report(experiment, settings).ok()).collect();
        write_page(&reports, page)?;
    }
    Ok(ran)
}

fn report(arguments: ReportArguments) -> Result<bool> {
    let settings = arguments.settings;
    let all = arguments.names == ["all"];
    let mut reports = Vec::new();
    for experiment in chosen(&arguments.names)? {
        match runner::report(&experiment, &settings) {
            Err(_) if all => {}
            report => reports.push(report?),
        }
    }
    show(&reports, arguments.page.as_deref(), arguments.markdown)?;
    Ok(true)
}

fn peers(arguments: PeersArguments) -> Result<bool> {
    let effort = if arguments.quick { Effort::Quick } else { Effort::Full };
    let settings = RunSettings { effort, ..arguments.settings };
    let experiments: Vec<_> = Experiment::all()?.into_iter().filter(Experiment::compares_peers).collect();
    let ran = run_each(&experiments, &settings, Some(&arguments.page))?;
    print(&format!("{}\n", arguments.page.display()))?;
    Ok(ran.len() == experiments.len())
}

fn chosen(names: &[String]) -> Result<Vec<Experiment>> {
    if names == ["all"] {
        Experiment::all()
    } else {
        names.iter().map(|name| Experiment::find(name)).collect()
    }
}

fn show(reports: &[Report], page: Option<&Path>, markdown: bool) -> Result<()> {
    for report in reports {
        let text = match markdown {
            true => format!("## {}\n\n{}", report.title, report.to_markdown()),
            false => report.to_text(),
        };
        print(&text)?;
    }
    write_page(reports, page)
}

fn write_page(reports: &[Report], page: Option<&Path>) -> Result<()> {
    page.map_or(Ok(()), |page| {
        fs::write(page, baton_figures::page("Baton's laboratory", reports))
            .with_context(|| page.display().to_string())
    })
}

/// Prints a result. A reader that has seen enough (`baton-lab list | head`) is no failure.
fn print(text: &str) -> Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        super::Arguments::command().debug_assert();
    }
}
