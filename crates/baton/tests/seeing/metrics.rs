//! The metrics page, read by Prometheus' own parser.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::agent::Body;
use crate::common::client::{Client, Response};
use crate::common::folder::Folder;
use crate::common::leave_out;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::origin::Origin;

fn start(architecture: &str, origin: &Origin) -> Server {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    folder.write("large.bin", vec![b'x'; 16 << 20]);
    let configuration = format!(
        "architecture = \"{architecture}\"\nprocesses = 2\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [[site]]\nname = \"one \\\"quoted\\\"\"\n{{listen}}\nroot = \"{{root}}\"\n\
         [[site.route]]\npath = \"/origin\"\nproxy = \"http://{}\"\n\
         [[site]]\nname = \"two\"\nhosts = [\"two.example\"]\nlisten = \"127.0.0.1:0\"\nroot = \"{{root}}\"\n",
        origin.address()
    );
    Server::run(folder, &configuration)
}

fn origin() -> Origin {
    Origin::start(|peer| {
        while let Some(seen) = peer.request() {
            match seen.path().ends_with("bad") {
                true => peer.send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"),
                false => peer.answer("", "answer"),
            }
        }
    })
}

fn page(server: &Server, fields: &str) -> Response {
    let admin = *server.addresses().last().expect("the admin listener");
    let mut client = Client::connect(admin);
    client.send(format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    client.response()
}

fn value(server: &Server, sample: &str) -> Option<f64> {
    let page = page(server, "");
    let line =
        page.text().lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ').map(str::to_owned));
    line.map(|number| number.parse().expect("a number"))
}

/// Goal: sites, origins and codes are counted where they belong, over both versions, and requests in flight while they are.
/// Method: known requests, one of them taken slowly.
#[test]
fn sites_and_origins_have_their_own_figures() {
    let origin = origin();
    for architecture in ["auto", "pipeline", "mp"] {
        let server = start(architecture, &origin);
        for protocol in [Protocol::Http, Protocol::H2] {
            let mut agent = server.over(protocol).agent();
            for _ in 0..3 {
                assert_eq!(agent.get("/small.txt").status, 200);
            }
            assert_eq!(agent.get("/none").status, 404);
            assert_eq!(agent.get("/origin/good").status, 200);
            assert_eq!(agent.get("/origin/bad").status, 503);
        }
        assert_eq!(server.agent().ask_host("two.example", "GET", "/none", "").status, 404);
        let site = "{site=\"one \\\"quoted\\\"\"";
        let upstream = format!("{{upstream=\"http://{}\"", origin.address());
        for (sample, count) in [
            (format!("baton_http_requests_total{site},code=\"200\"}}"), 8.0),
            (format!("baton_http_requests_total{site},code=\"404\"}}"), 2.0),
            (format!("baton_http_requests_total{site},code=\"503\"}}"), 2.0),
            ("baton_http_requests_total{site=\"two\",code=\"404\"}".into(), 1.0),
            (format!("baton_http_request_duration_seconds_count{site}}}"), 12.0),
            (format!("baton_http_request_duration_seconds_bucket{site},le=\"+Inf\"}}"), 12.0),
            (format!("baton_http_requests_in_flight{site}}}"), 0.0),
            ("baton_http_response_body_bytes_total{site=\"two\"}".to_owned(), 0.0),
            (format!("baton_upstream_requests_total{upstream},code=\"200\"}}"), 2.0),
            (format!("baton_upstream_requests_total{upstream},code=\"503\"}}"), 2.0),
            (format!("baton_upstream_request_duration_seconds_count{upstream}}}"), 4.0),
            (format!("baton_upstream_requests_in_flight{upstream}}}"), 0.0),
        ] {
            if sample.contains("bytes") {
                assert!(value(&server, &sample) > Some(count), "{architecture}: {sample}");
                continue;
            }
            wait_until(&format!("{architecture}: {sample} is {count}"), || {
                value(&server, &sample) == Some(count)
            });
        }
        let sum = value(&server, &format!("baton_http_request_duration_seconds_sum{site}}}"));
        assert!(sum > Some(0.0), "{sum:?}");

        let mut slow = server.agent();
        slow.begin("GET", "localhost", "/large.bin", "", Body::None);
        assert_eq!(slow.head().status, 200);
        let in_flight = format!("baton_http_requests_in_flight{site}}}");
        wait_until("a request is in flight", || value(&server, &in_flight) == Some(1.0));
        drop(slow);
        wait_until("it is not any more", || value(&server, &in_flight) == Some(0.0));
        for sample in ["process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds"] {
            assert!(value(&server, sample) > Some(0.0), "{sample}");
        }
        assert!(value(&server, "process_cpu_seconds_total") >= Some(0.0));
    }
}

/// Goal: Prometheus and OpenMetrics read the page. Method: the parsers of their own client library, on a page with
/// everything in it.
#[test]
fn parsers_take_both_formats() {
    if !Path::new("/usr/lib/python3/dist-packages/prometheus_client").exists() {
        return leave_out("parsers of Prometheus", "python3-prometheus-client is not installed");
    }
    let origin = origin();
    let server = start("auto", &origin);
    server.get("/small.txt");
    server.get("/origin/good");
    wait_until("they are counted", || page(&server, "").text().contains("baton_upstream_requests_total{"));
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
    for (fields, media_type, parser) in [
        ("", "text/plain; version=0.0.4; charset=utf-8", "prometheus_client.parser"),
        (
            accept,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            "prometheus_client.openmetrics.parser",
        ),
    ] {
        let page = page(&server, fields);
        assert_eq!(page.field("content-type"), Some(media_type));
        let families = families(parser, page.text());
        for family in [
            "baton_http_request_duration_seconds histogram",
            "baton_http_requests counter",
            "baton_http_requests_in_flight gauge",
            "baton_upstream_request_duration_seconds histogram",
            "process_cpu_seconds counter",
            "baton_responses counter",
        ] {
            assert!(families.lines().any(|line| line == family), "{family} in\n{families}");
        }
    }
}

/// The families of a page, as a parser of Python's sees them.
fn families(parser: &str, page: &str) -> String {
    let script = format!(
        "import sys\nfrom {parser} import text_string_to_metric_families as parse\n\
         for family in parse(sys.stdin.read()): print(family.name, family.type)\n"
    );
    let mut command = Command::new("/usr/bin/python3");
    let mut child =
        command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
    child.stdin.take().expect("its input").write_all(page.as_bytes()).expect("read");
    let output = child.wait_with_output().expect("its end");
    assert!(output.status.success(), "{parser} refuses\n{page}");
    String::from_utf8(output.stdout).expect("text")
}

/// Goal: dashboard and alerts that come with the server show what it counts. Method: every metric that they name is on the page
/// of a server with an origin and TLS, and every description of a panel is made of that page's help texts.
#[test]
fn dashboard_and_alerts_name_metrics_of_the_page() {
    let origin = origin();
    let server = start("auto", &origin);
    server.get("/origin");
    let page = page(&server, "");
    let page = page.text();
    let read = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist").join(name);
        std::fs::read_to_string(path).expect("a file of the package")
    };
    for file in ["grafana-dashboard.json", "prometheus-alerts.yml"] {
        let text = read(file);
        let words = text.split(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '_');
        let metrics: Vec<_> =
            words.filter(|word| word.starts_with("baton_") || word.starts_with("process_")).collect();
        assert!(metrics.len() > 10, "{file}");
        for metric in metrics {
            let family = metric.strip_suffix("_bucket").unwrap_or(metric);
            assert!(page.contains(&format!("# TYPE {family} ")), "{file}: {metric}");
        }
    }
    let dashboard: serde_json::Value = serde_json::from_str(&read("grafana-dashboard.json")).expect("JSON");
    let panels =
        dashboard["panels"].as_array().expect("panels").iter().filter(|panel| panel["type"] != "row");
    for panel in panels {
        for line in panel["description"].as_str().expect("a description").lines() {
            let is_help = page.lines().any(|help| help.starts_with("# HELP ") && help.ends_with(line));
            assert!(is_help, "stale, see scripts/dashboard: {line}");
        }
    }
}
