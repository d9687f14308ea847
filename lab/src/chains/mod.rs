//! What references between programs save: chains of processes on one CPU, with the calls of IO-Lite and without.
//!
//! A chain is started again and again for the time of a measurement. Its CPU time is that of all its processes, from their start
//! on. Each says how many bytes its system calls have copied. What a chain prints must not depend on the way.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::ground::{Ground, Keep};
use crate::quantity::Quantity;
use crate::rig::processes::children_cpu;
use crate::rig::{Machine, find_program, output_of, own_folder};
use crate::servers::REPOSITORY;

/// What to run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChainSettings {
    /// Lengths of the files that are counted and searched, in bytes.
    files: Vec<usize>,
    /// How many words are permuted.
    words: u32,
    /// Length of the text that is compiled, in bytes.
    compiled: usize,
    /// Rounds of work of a compiler for each byte.
    work: u32,
}

/// Programs, each of which reads what the one before it writes.
struct Chain {
    name: String,
    programs: Vec<String>,
    /// What the first one reads, and how many bytes enter the chain.
    file: usize,
    bytes: usize,
}

/// Measures all chains.
///
/// # Errors
/// If the library or a compiler is missing, a program fails, or the two ways of a chain say different things.
pub(crate) fn run(settings: &ChainSettings, ground: Ground<'_>, keep: Keep<'_>) -> Result<()> {
    let folder = own_folder(ground.folder).with_context(|| ground.folder.display().to_string())?;
    build(&folder)?;
    let machine = Machine::prepare(false, 1)?;
    machine.run_on(&machine.client_cpus[..1])?;
    let chains = chains(settings, ground);
    for chain in &chains {
        fs::write(folder.join(chain.file.to_string()), text(chain.file))?;
    }
    for round in 0..ground.rounds {
        for chain in &chains {
            let mut said = Vec::new();
            for way in WAYS {
                let values = measure(chain, way, &folder, ground.duration).map(|(values, output)| {
                    said.push(output);
                    values
                });
                keep(&chain.name, way, round, values)?;
            }
            ensure!(said.windows(2).all(|two| two[0] == two[1]), "{}: the ways say {said:?}", chain.name);
        }
    }
    Ok(())
}

fn chains(settings: &ChainSettings, ground: Ground<'_>) -> Vec<Chain> {
    let mut chains = Vec::new();
    let mut add = |name: String, programs: &[String], file, bytes| {
        chains.push(Chain { name, programs: programs.to_vec(), file, bytes });
    };
    for &bytes in ground.some(&settings.files, 1) {
        add(format!("wc of {bytes}"), &["wc".into()], bytes, bytes);
        add(format!("cat to grep of {bytes}"), &["cat".into(), "grep needle".into()], bytes, bytes);
    }
    let words = if ground.is_tiny { settings.words.min(TINY_WORDS) } else { settings.words };
    let permuted = (1..=words as usize).product::<usize>() * 4 * words as usize;
    add("permute to wc".into(), &[format!("permute {words}"), "wc".into()], 0, permuted);
    let compiler = format!("compile {}", settings.work);
    let compilers = [compiler.clone(), compiler.clone(), compiler, "wc".into()];
    add("compilers".into(), &compilers, settings.compiled, settings.compiled);
    chains
}

/// Lines of ten words, of which some have what is looked for.
fn text(bytes: usize) -> Vec<u8> {
    let line = |number: usize| match number % 97 {
        0 => format!("{number} a needle among all the other words of this line\n"),
        _ => format!("{number} nothing is here among all the other words of it\n"),
    };
    (0..).map(line).flat_map(String::into_bytes).take(bytes).collect()
}

fn build(folder: &Path) -> Result<()> {
    let library =
        find_program("libbaton_iolite.so").context("libbaton_iolite.so is not built: make adapters")?;
    let repository = Path::new(REPOSITORY);
    // Programs look for the name that the library has where it is installed.
    let installed = folder.join("libbaton_iolite.so.0");
    let _ = fs::remove_file(&installed);
    symlink(&library, &installed)?;
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-o"]).arg(folder.join("chain")).arg(repository.join("lab/programs/chain.c"));
    compile.arg("-I").arg(repository.join("adapters/iolite/include")).arg(&installed);
    compile.arg(format!("-Wl,-rpath,{}", folder.display()));
    output_of(&mut compile).map(drop).context("chain.c, which needs gcc and libc6-dev")
}

/// Runs a chain again and again. Returns what a run costs, and what the last one has said.
fn measure(
    chain: &Chain,
    way: &str,
    folder: &Path,
    duration: Duration,
) -> Result<(BTreeMap<Quantity, f64>, String)> {
    let begin = Instant::now();
    let before = children_cpu()?;
    let mut runs = 1_u32;
    let mut outcome = once(chain, way, folder)?;
    while begin.elapsed() < duration {
        outcome = once(chain, way, folder)?;
        runs += 1;
    }
    let after = children_cpu()?;
    let [user, system] =
        [0, 1].map(|mode| (after[mode] - before[mode]).as_secs_f64() * 1e6 / f64::from(runs));
    let (said, copied) = outcome;
    let values = [
        (Quantity::RunUs, user + system),
        (Quantity::SystemUs, system),
        (Quantity::Copies, copied as f64 / chain.bytes as f64),
    ];
    Ok((values.into(), said))
}

/// What the last program prints, and how many bytes all have copied.
fn once(chain: &Chain, way: &str, folder: &Path) -> Result<(String, u64)> {
    let counts = folder.join("counts");
    File::create(&counts)?;
    let mut input = Stdio::from(File::open(folder.join(chain.file.to_string()))?);
    let mut children: Vec<Child> = Vec::new();
    let mut said = String::new();
    for (at, program) in chain.programs.iter().enumerate() {
        let mut child = Command::new(folder.join("chain"))
            .arg(way)
            .args(program.split(' '))
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(File::options().append(true).open(&counts)?)
            .spawn()?;
        let mut output = child.stdout.take().expect("its output is a pipe");
        children.push(child);
        if at + 1 == chain.programs.len() {
            output.read_to_string(&mut said)?;
            break;
        }
        input = output.into();
    }
    for child in &mut children {
        ensure!(child.wait()?.success(), "{}, {way}: {}", chain.name, fs::read_to_string(&counts)?);
    }
    let copied = fs::read_to_string(&counts)?.lines().map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok((said, copied))
}

const WAYS: [&str; 2] = ["plain", "references"];

/// Words that are permuted where it only has to work.
const TINY_WORDS: u32 = 8;
