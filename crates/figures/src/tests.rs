//! A report with one of everything, and what each form of it has to show.

use crate::{
    Axis, Claim, Datum, Figure, FigureKind, Interval, Line, Point, Published, Report, Table, Verdict,
    claims_table, page,
};

fn report() -> Report {
    Report {
        name: "example".into(),
        title: "A <title>".into(),
        words: vec!["What this shows.".into()],
        figures: vec![lines(), heat_map()],
        claims: vec![
            Claim::new("four times", "4.5 times".into(), true, "unused"),
            Claim::new("idle 1 %", "9 %".into(), false, "because"),
        ],
        tables: vec![Table {
            title: "All numbers".into(),
            head: vec!["a".into(), "b".into()],
            rows: vec![vec!["1".into(), "a|b".into()]],
            note: String::new(),
            is_long: true,
        }],
    }
}

fn lines() -> Figure {
    let mut lard = Line::exact("lard", [(1.0, 100.0), (2.0, 450.0), (4.0, 1234.5)]);
    lard.points[1].datum = Datum::Number(Interval { low: 400.0, median: 450.0, high: 500.0 });
    let mut wrr = Line::exact("wrr", [(1.0, 100.0), (2.0, 200.0)]);
    wrr.points.push(Point { x: 4.0, datum: Datum::Unfair("one client had no answer".into()) });
    Figure {
        name: "f".into(),
        title: "Throughput & more".into(),
        x: "nodes".into(),
        y: Axis::linear("", "requests/s"),
        lines: vec![wrr, lard],
        published: vec![Published::point(2.0, 400.0, "published: 4x")],
        ..Figure::default()
    }
}

fn heat_map() -> Figure {
    let mut wide = Line::exact("40", [(1000.0, 20_500.0), (4000.0, 21_000.0)]);
    wide.points.push(Point { x: 8000.0, datum: Datum::Cannot("no such number of files".into()) });
    let mut narrow = Line::exact("4", [(1000.0, 900.0)]);
    narrow.points.push(Point { x: 4000.0, datum: Datum::Unfair("one client had no answer".into()) });
    Figure {
        name: "matrix".into(),
        title: "What was tried".into(),
        kind: FigureKind::HeatMap,
        x: Axis::linear("connections", ""),
        y: Axis::linear("rate", "requests/s"),
        by: "processes".into(),
        lines: vec![wide, narrow],
        ..Figure::default()
    }
}

#[test]
fn a_figure_draws_lines_whiskers_crosses_and_what_is_published() {
    let svg = lines().to_svg();
    assert!(svg.contains("Throughput &amp; more"));
    assert_eq!(svg.matches("<polyline").count(), 2);
    assert_eq!(svg.matches("class=\"w\"").count(), 3, "one whisker: a line and two ends");
    assert!(svg.contains("<title>one client had no answer</title>"), "{svg}");
    assert!(svg.contains(">published: 4x<"));
}

#[test]
fn a_heat_map_has_a_cell_for_each_datum_and_shows_what_is_unfair() {
    let svg = heat_map().to_svg();
    assert_eq!(svg.matches("class=\"h\"").count(), 3);
    assert_eq!(svg.matches("class=\"x\"").count(), 3, "two without a number, one that was not measured");
    assert!(svg.contains(">cannot<") && svg.contains(">×<"));
}

#[test]
fn a_figure_without_data_is_drawn() {
    for kind in [FigureKind::Lines, FigureKind::Bars, FigureKind::HeatMap] {
        let svg = Figure { kind, title: "empty".into(), ..Figure::default() }.to_svg();
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
    let mut figure = lines();
    figure.lines[0].points[0].datum = Datum::Number(Interval::exact(f64::NAN));
    assert!(!figure.to_svg().contains("NaN"), "what is no number is not drawn");
}

#[test]
fn a_page_escapes_draws_and_gives_reasons() {
    let page = page("What was <found>", &[report(), report()]);
    for expected in [
        "<h1>What was &lt;found&gt;</h1>",
        "A &lt;title&gt; — 1 of 2 hold",
        "<td class=no>does not, because because",
        "<li>× wrr at 4: one client had no answer",
        "<td>450 (400–500)",
        "<details><summary>All numbers</summary>",
    ] {
        assert!(page.contains(expected), "{expected} in\n{page}");
    }
    assert_eq!(page.matches("<svg").count(), 4);
    assert!(!page.contains("http://") || page.matches("http://").count() == 4, "only names of XML");
    assert!(!page.contains("<script") && !page.contains("src="));
}

#[test]
fn a_table_that_is_wider_than_long_is_turned() {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let wide = Table {
        head: words(&["load", "a", "b"]),
        rows: vec![words(&["1 KB", "5", "7"])],
        ..Table::default()
    };
    let long = wide.upright();
    assert_eq!(long.head, words(&["load", "1 KB"]));
    assert_eq!(long.rows, [words(&["a", "5"]), words(&["b", "7"])]);
    assert_eq!(long.upright().rows, long.rows, "once is enough");
    let square = lines().table();
    assert_eq!(square.upright().head, square.head);
}

#[test]
fn text_has_a_row_for_each_x_and_tells_what_does_not_hold() {
    let text = report().to_text();
    let rows: Vec<_> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for expected in [
        "nodes wrr lard published: 4x",
        "1 100 100",
        "2 200 450 (400–500) 400",
        "4 × 1,235",
        "× wrr at 4: one client had no answer",
        "DOES NOT published: idle 1 %",
    ] {
        assert!(rows.iter().any(|row| row == expected), "{expected} in\n{text}");
    }
    assert!(text.contains("why:       because") && !text.contains("unused"));
}

#[test]
fn each_claim_is_a_row_and_those_that_fail_are_explained() {
    let mut report = report();
    let open = Claim {
        published: "ten times".into(),
        ours: "–".into(),
        verdict: Verdict::Open("nginx is not here".into()),
    };
    report.claims.push(open);
    let text = claims_table(&[report]);
    assert!(text.contains("| `example` | four times | 4.5 times | yes |\n"), "{text}");
    assert!(text.contains("| `example` | idle 1 % | 9 % | **no** |\n"), "{text}");
    assert!(text.contains("\nWhere it does not hold:\n\n- `example`, idle 1 %: because.\n"), "{text}");
    assert!(
        text.ends_with("\nWhat cannot be judged:\n\n- `example`, ten times: nginx is not here.\n"),
        "{text}"
    );
}

#[test]
fn a_report_has_words_tables_and_verdicts_in_this_order() {
    let text = report().to_markdown();
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
    assert!(text.starts_with("What this shows.\n\nThroughput & more (requests/s):\n\n| nodes |"), "{text}");
    assert!(at("All numbers:") < at("| `example` | four times |"));
}

#[test]
fn a_table_escapes_bars_and_keeps_reasons() {
    assert!(report().tables[0].to_markdown().contains("| 1 | a\\|b |\n"));
    let text = lines().table().to_markdown();
    assert!(
        text.starts_with("| nodes | wrr | lard | published: 4x |\n| --- | --- | --- | --- |\n"),
        "{text}"
    );
    assert!(text.contains("| 2 | 200 | 450 (400–500) | 400 |\n"), "{text}");
    assert!(text.ends_with("\n× wrr at 4: one client had no answer\n"), "{text}");
}
