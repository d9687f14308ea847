//! The search, given what Harji printed, chooses what he chose.
//!
//! His thesis has a matrix of condensed areas for each of nine servers and three sizes of memory, first coarse, then fine
//! around the best. The search asks for cells of these matrices; a cell that is not printed fails, as one marked X is
//! unfair.

use std::collections::BTreeMap;

use baton_tune::{Budget, Candidate, Choice, Dial, Goal, Measured, Search, ServerKind, Space, TrialOutcome};

/// A server's tables.
struct Server {
    name: String,
    tasks: Dial,
    connections: Dial,
    cache: Dial,
    /// By tasks, connections, cache; `None` is an X.
    areas: BTreeMap<[u32; 3], Option<f64>>,
    /// What the thesis chose.
    best: [u32; 3],
}

fn number(text: &str) -> u32 {
    text.parse().unwrap_or_else(|_| panic!("{text} is a number"))
}

fn column(text: &str) -> (u32, u32) {
    let (connections, cache) = text.split_once('/').expect("connections/cache");
    (number(connections), number(cache))
}

fn servers(text: &str) -> Vec<Server> {
    let sections = text.split("\nserver ").skip(1);
    sections.map(server).collect()
}

fn server(section: &str) -> Server {
    let mut lines = section.lines().filter(|line| !line.is_empty());
    let [name, cell, tasks] = lines.next().map(words).expect("a head")[..] else { panic!("{section}") };
    let (connections, cache) = column(cell);
    let best = [number(tasks), connections, cache];
    let mut areas = BTreeMap::new();
    // Coarse, then fine: tasks, connections and caches of each.
    let mut seen: [[Vec<u32>; 3]; 2] = Default::default();
    let (mut table, mut columns) = (0, Vec::new());
    for line in lines {
        let words = words(line);
        if words[0] == "table" {
            table = usize::from(!columns.is_empty());
            columns = words[2..].iter().map(|word| column(word)).collect();
            continue;
        }
        let tasks = number(words[0]);
        assert_eq!(words.len(), columns.len() + 1, "{name}: {line}");
        for (&(connections, cache), area) in columns.iter().zip(&words[1..]) {
            let cell = [tasks, connections, cache];
            // The fine table replaces what the coarse one has.
            areas.insert(cell, area.parse().ok());
            for (values, value) in seen[table].iter_mut().zip(cell) {
                values.push(value);
            }
        }
    }
    let [tasks, connections, cache] = [0, 1, 2].map(|dial| Dial::new(&seen[0][dial], &seen[1][dial]));
    Server { name: name.into(), tasks, connections, cache, areas, best }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn space(servers: &[Server]) -> Space {
    let kind = |server: &Server| ServerKind {
        name: server.name.clone(),
        tasks: server.tasks.clone(),
        connections: server.connections.clone(),
        cache_mib: server.cache.clone(),
    };
    Space { kinds: servers.iter().map(kind).collect() }
}

/// Searches with what is printed, disturbed by at most such a share of it; returns it with the number of trials.
fn search(servers: &[Server], budget: Budget, noise: f64) -> (Search, usize) {
    let mut random = fastrand::Rng::with_seed(7);
    // Where each server with its own cache is alike: 10,000 connections.
    let present = Candidate { kind: usize::MAX, tasks: 0, connections: 0, cache_mib: 0 };
    let mut search = Search::new(space(servers), present, Goal::Rate, budget);
    let mut trials = 0;
    while let Some(trial) = search.poll_trial() {
        trials += 1;
        // The machine is slower in some pairs than in others; that disturbs both of a pair.
        let weather = 1.0 - noise * random.f64();
        let mut measured = |area: f64| Measured {
            rate: area * weather * (1.0 + noise / 4.0 * (random.f64() - 0.5)),
            p99_ms: 1.0,
            memory_mib: 1.0,
        };
        let Candidate { kind, tasks, connections, cache_mib } = trial.candidate;
        let outcome = match servers[kind].areas.get(&[tasks, connections, cache_mib]) {
            Some(Some(area)) => TrialOutcome::Fair(measured(*area)),
            Some(None) => TrialOutcome::Unfair("X".into()),
            None => TrialOutcome::Failed("not printed".into()),
        };
        let took_s = 2.0 * (trial.seconds + budget.start_s);
        search.handle_trial(trial, took_s, &measured(PRESENT), outcome);
    }
    (search, trials)
}

/// A server without tuning: the worst fair cell of most tables is better.
const PRESENT: f64 = 0.5;
const HOURS: Budget = Budget { total_s: 20_000.0, start_s: 1.0 };

fn chosen(search: &Search) -> Candidate {
    match search.choice() {
        Choice::Change(candidate, _) => candidate,
        keep @ Choice::Keep(_) => panic!("{keep:?}"),
    }
}

fn cell(candidate: Candidate) -> [u32; 3] {
    [candidate.tasks, candidate.connections, candidate.cache_mib]
}

const MEMORIES: [(&str, &str, &str); 3] = [
    ("1.4 GB", include_str!("thesis/1.4GB.txt"), "watpipe-nb"),
    ("4 GB", include_str!("thesis/4GB.txt"), "sharedsymped-nb"),
    ("0.75 GB", include_str!("thesis/0.75GB.txt"), "watpipe-b"),
];

#[test]
fn each_server_gets_the_settings_that_the_thesis_chose() {
    for (memory, text, _) in MEMORIES {
        let servers = servers(text);
        assert_eq!(servers.len(), 9);
        for server in servers {
            let (best, name) = (server.best, server.name.clone());
            let (search, _) = search(&[server], HOURS, 0.0);
            assert_eq!(cell(chosen(&search)), best, "{name} with {memory}: tasks, connections, cache");
        }
    }
}

#[test]
fn of_all_servers_the_one_wins_that_leads_the_thesis() {
    for (memory, text, winner) in MEMORIES {
        let servers = servers(text);
        let (search, trials) = search(&servers, HOURS, 0.0);
        let chosen = chosen(&search);
        let server = &servers[chosen.kind];
        assert_eq!((server.name.as_str(), cell(chosen)), (winner, server.best), "{memory}");
        let cells: usize = servers.iter().map(|server| server.areas.len()).sum();
        assert!(
            trials < 2 * cells,
            "{trials} trials of {cells} cells: halving measures some twice, few more often"
        );
    }
}

/// Ten minutes are a tenth of what all cells would take, and machines are noisy.
#[test]
fn in_ten_noisy_minutes_the_choice_is_nearly_as_good() {
    for (memory, text, _) in MEMORIES {
        let servers = servers(text);
        let (search, trials) = search(&servers, Budget { total_s: 600.0, start_s: 0.5 }, 0.1);
        let best =
            servers.iter().flat_map(|server| server.areas.values().flatten()).copied().fold(0.0, f64::max);
        let chosen = chosen(&search);
        let area = servers[chosen.kind].areas[&cell(chosen)].expect("an X is never chosen");
        assert!(area > 0.93 * best, "{memory}: {area} of {best}, {chosen:?}");
        assert!((40..300).contains(&trials), "{memory}: {trials} trials");
    }
}
