//! `baton sim` from outside: logs in, answers out.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_baton")).arg("sim").args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A log of 2000 requests within 20 seconds for 200 files of 100 KB, with a line that is none.
fn write_log(folder: &Path) -> String {
    let mut log = String::from("half a line [\n");
    for request in 0..2000_u32 {
        // The larger half of the files gets as many requests as the smaller one.
        let file = (request * request + request / 7) % 200;
        let second = request / 100;
        log += &format!(
            "192.0.2.1 - - [10/Oct/2000:13:55:{second:02} +0000] \"GET /{file}.jpg HTTP/1.1\" 200 102400 \"-\" \"-\"\n"
        );
    }
    let path = folder.join("access.log");
    fs::write(&path, log).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The busiest second has a hundred requests; findings and advice are printed in words, and the numbers written to
/// files.
#[test]
fn advice_is_given_from_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = write_log(folder.path());
    let out = folder.path().join("figures");
    let output = sim(&[
        "advise",
        &log,
        "--profile",
        "published",
        "--set",
        "cache_mb=8",
        "--out",
        out.to_str().unwrap(),
    ]);
    let text = stdout(&output);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for expected in [
        "2000 requests",
        "100 in the busiest second",
        "Skipped 1 bad line:",
        "For 100 requests a second",
        "Networks cost nothing",
        "give it with --need",
    ] {
        let text = text.replace('\n', " ");
        assert!(text.contains(expected), "{expected} in {text}");
    }
    for file in ["index.html", "advise.json", "advise.csv", "advise.svg"] {
        assert!(fs::metadata(out.join(file)).unwrap().len() > 0, "{file}");
    }
}

/// Baton's own log and Caddy's say the same as the combined format.
#[test]
fn logs_of_json_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (mut baton, mut caddy, mut combined) = (String::new(), String::new(), String::new());
    for request in 0..1500_u32 {
        let (file, second) = (request % 40, request / 100);
        let time = 971_186_100 + second;
        baton += &format!(
            "{{\"time\":{time},\"peer\":\"::1\",\"site\":\"s\",\"request\":\"GET /{file} HTTP/1.1\",\"status\":200,\
             \"body_bytes\":9000,\"duration_us\":0,\"outcome\":\"complete\",\"referer\":\"\",\"user_agent\":\"\"}}\n"
        );
        caddy += &format!(
            "{{\"level\":\"info\",\"ts\":{time}.5,\"logger\":\"http.log.access\",\"msg\":\"handled request\",\"request\":{{\
             \"method\":\"GET\",\"uri\":\"/{file}\",\"headers\":{{}}}},\"size\":9000,\"status\":200}}\n"
        );
        combined += &format!(
            "::1 - - [10/Oct/2000:13:55:{second:02} +0000] \"GET /{file} HTTP/1.1\" 200 9000 \"-\" \"-\"\n"
        );
    }
    let advice = |name: &str, log: &str| {
        let path = folder.path().join(name);
        fs::write(&path, log).unwrap();
        let output = sim(&["advise", path.to_str().unwrap(), "--need", "900", "--profile", "published"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        stdout(&output).replace(path.to_str().unwrap(), "LOG")
    };
    let expected = advice("combined.log", &combined);
    assert!(expected.contains("you need "), "{expected}");
    assert_eq!(advice("baton.log", &baton), expected);
    assert_eq!(advice("caddy.log", &caddy), expected);
}

/// The same seed gives the same numbers, another one others.
#[test]
fn comparisons_repeat_by_their_seed() {
    let run = |seed| {
        let flags = ["--policies", "lard-r,power-of-two", "--nodes", "3", "--json", "--seed", seed];
        let output = sim(&[&["compare", "zipf:targets=200,requests=3000"][..], &flags].concat());
        let reports: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(reports[0]["runs"].as_array().unwrap().len(), 2);
        reports
    };
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

/// Policies of the shared cache on films and on a log, repeated by their seed.
#[test]
fn caches_are_compared() {
    let run = |seed| {
        let films = "media:films=30,sessions=300,kbit=200";
        let output = sim(&[
            "cache",
            films,
            "--policies",
            "reach,wu/whole",
            "--sizes",
            "5,20",
            "--json",
            "--seed",
            seed,
        ]);
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let report = run("7");
    let caches = report[0]["caches"].as_array().unwrap();
    assert_eq!(caches.len(), 4);
    assert!(caches.iter().all(|cache| cache["wanted_bytes"].as_u64() > Some(0)));
    assert_eq!(report, run("7"));
    assert_ne!(report, run("8"));

    let folder = tempfile::tempdir().unwrap();
    let text =
        stdout(&sim(&["cache", &write_log(folder.path()), "--policies", "lru,s3-fifo", "--sizes", "50"]));
    for expected in ["Skipped 1 bad line:", "Saved at the origin", "Delayed starts", "s3-fifo"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

/// Goal: a media log becomes the sessions of its players. Method: fifty viewers see the first megabyte of a film, in two parts,
/// and seek; a log of whole files would want the whole film each time, and one that is cut off would never miss its middle.
#[test]
fn players_of_a_log_are_sessions_of_parts() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("media.log");
    let lines = (0..50_u32).flat_map(|viewer| {
        let parts = [(0, 524_288), (524_288, 524_288), (50 << 20, 262_144)];
        (0..).zip(parts).map(move |(part, (start, bytes))| {
            let time = 971_186_100 + viewer * 60 + part;
            format!(
                "{{\"time\":{time},\"peer\":\"192.0.2.{viewer}\",\"request\":\"GET /film.mp4 HTTP/1.1\",\"status\":206,\
                 \"body_bytes\":{bytes},\"duration_us\":900000,\"request_header.Range\":\"bytes={start}-\"}}\n"
            )
        })
    });
    fs::write(&log, lines.collect::<String>()).unwrap();
    let output = sim(&["cache", log.to_str().unwrap(), "--policies", "lru", "--sizes", "100", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |name: &str| report[0]["caches"][0][name].as_u64().unwrap();
    // Of fifty sessions the first fifteen warm the cache.
    assert_eq!((number("requests"), number("hits"), number("delayed_starts")), (35, 35, 0));
    assert_eq!(number("wanted_bytes"), 35 * (1_048_576 + 262_144));
    assert_eq!(number("cache_bytes"), (50 << 20) + 262_144);
}

/// Documents that migrate: numbers for each site and number of servers, with and without a hot page, repeated by their seed.
#[test]
fn documents_migrate_between_servers() {
    let run = |seed: &str, more: &[&str]| {
        let flags = ["documents", "lod", "site:pages=20,shared=1", "--servers", "1,3", "--seconds", "600"];
        let quick = ["--set", "statistics_s=1,ping_s=2,peer_s=3", "--seed", seed];
        let output = sim(&[&flags[..], &quick, more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        stdout(&output)
    };
    let report: serde_json::Value = serde_json::from_str(&run("7", &["--json"])).unwrap();
    let documents = report[0]["documents"].as_array().unwrap();
    assert_eq!(documents.len(), 8, "two sites, one and three servers, with and without a hot page");
    let number = |at: usize, name: &str| documents[at][name].as_f64().unwrap();
    assert!(number(1, "connections_per_s") > 2.0 * number(0, "connections_per_s"), "three servers do more");
    assert!(number(1, "migrations") > 50.0 && number(0, "migrations") == 0.0);
    assert_eq!((number(3, "hot_share"), number(7, "hot_share")), (0.0, 1.0));
    assert_eq!(report, serde_json::from_str::<serde_json::Value>(&run("7", &["--json"])).unwrap());
    assert_ne!(report, serde_json::from_str::<serde_json::Value>(&run("8", &["--json"])).unwrap());

    let text = run("7", &["--metric", "bytes", "--hot", "none"]).replace('\n', " ");
    for expected in ["lod: 351 documents", "embedded by 20 pages", "Speed-up", "Until throughput settles"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(!text.contains("a page becomes hot"), "{text}");

    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let line = |path: &str, from: &str| {
        let time = "10/Oct/2000:13:55:00 +0000";
        format!("192.0.2.1 - - [{time}] \"GET {path} HTTP/1.1\" 200 2048 \"{from}\" \"-\"\n")
    };
    let (index, page) = ("http://site.example/", "http://site.example/page");
    let lines = [line("/", "-"), line("/logo.png", index), line("/page", index), line("/logo.png", page)];
    fs::write(&log, lines.concat()).unwrap();
    let flags = ["--servers", "1", "--seconds", "60", "--hot", "none"];
    let text = stdout(&sim(&[&["documents", log.to_str().unwrap()], &flags[..]].concat())).replace('\n', " ");
    for expected in
        ["Read 4 lines", "3 documents, 1 entry point, 3 links", "one object is embedded by 2 pages"]
    {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

/// A published figure, here with few requests: the statement, our number and the verdict are in all that is written.
#[test]
fn experiments_are_run_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = sim(&["run", "chess", "--scale", "0.002", "--jobs", "1", "--out", out]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("chess"), "progress is reported");
    for (file, expected) in [
        ("claims.md", "| `chess` | lard-r closely matches WRR |"),
        ("index.html", "lard-r closely matches WRR"),
        ("chess.json", "\"holds\""),
        ("chess.csv", "trace,variant,policy,nodes"),
        ("chess.svg", "<svg"),
    ] {
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(text.contains(expected), "{expected} in {file}: {text}");
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.log");
    fs::write(&empty, "").unwrap();
    let cases: [(&[&str], &str); 16] = [
        (&["run", "no-such-figure"], "there is no experiment \"no-such-figure\""),
        (&["compare", "/no/such/log"], "cannot read the log /no/such/log"),
        (&["compare", empty.to_str().unwrap()], "no request to replay"),
        (&["cache", "media:reels=9"], "there is no \"reels\""),
        (&["cache", "--policies", "lfu"], "no cache policy is called `lfu`"),
        (&["cache", "--block-kb", "100"], "expected a power of two"),
        (&["cache", "--sizes", "0"], "expected a number above 0"),
        (&["documents", "/no/such/log"], "cannot read the log /no/such/log"),
        (&["documents", empty.to_str().unwrap()], "no page to begin a walk at"),
        (&["documents", "site:sites=9"], "there is no \"sites\""),
        (&["documents", "--hot", "0%"], "expected a share above 0 %"),
        (&["documents", "--set", "imbalance_percent=99"], "imbalance_percent cannot be \"99\""),
        (&["compare", "chess", "--set", "speed=9"], "there is no setting \"speed\""),
        (&["compare", "chess", "--policies", "lrd"], "no distribution policy is called `lrd`"),
        (&["compare", "chess", "--change", "explode:1@5%"], "is no change"),
        (&["compare", "zipf:requests=9", "--nodes", "4", "--change", "fail:4@5%"], "there is no node 4"),
    ];
    for (arguments, expected) in cases {
        let output = sim(arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(expected), "{arguments:?}: {told}");
    }
}

/// Reading logs may take minutes: wrong flags are reported before.
#[test]
fn wrong_flags_are_refused_before_the_work_begins() {
    let cases: [(&[&str], &str); 4] = [
        (&["compare", "zipf:requests=9", "--nodes", "4", "--change", "lose:4/8@5%"], "there is no node 4"),
        (&["compare", "/no/such/log", "--nodes", "2", "--change", "regain:2@5%"], "there is no node 2"),
        (&["compare", "/no/such/log", "--set", "speed=9"], "there is no setting \"speed\""),
        (&["advise", "/no/such/log", "--t-high", "9"], "--t-high has to be more than --t-low"),
    ];
    for (arguments, expected) in cases {
        let output = sim(arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(expected), "{arguments:?}: {told}");
        assert!(
            !told.contains("making the trace") && !told.contains("reading the logs"),
            "{arguments:?}: {told}"
        );
    }
}
