//! The view: what nodes there are after any ranges and events.

use std::collections::BTreeMap;

use baton_membership::{Applied, Entry, Event, Member, Registration, Snapshot, View};
use proptest::prelude::*;

const HOLD_MS: u64 = 30_000;

fn registration(name: &str, state: &str) -> Vec<u8> {
    format!(r#"{{"version":1,"to":"http://{name}","state":"{state}"}}"#).into_bytes()
}

fn entry(key: &str, value: &[u8], mod_revision: i64) -> Entry {
    Entry { key: key.into(), value: value.into(), mod_revision }
}

fn node(name: &str, mod_revision: i64) -> Entry {
    entry(&format!("nodes/{name}"), &registration(name, "up"), mod_revision)
}

fn snapshot(names: &[&str], revision: i64) -> Snapshot {
    Snapshot { cluster_id: 1, revision, entries: names.iter().map(|name| node(name, revision)).collect() }
}

fn gone(name: &str, revision: i64) -> Event {
    Event::Delete { key: format!("nodes/{name}"), revision }
}

fn names(view: &View) -> Vec<String> {
    let name = |member: Member| if member.held { format!("({})", member.name) } else { member.name };
    view.members().into_iter().map(name).collect()
}

fn view_of(nodes: &[&str]) -> View {
    let mut view = View::new(HOLD_MS);
    assert_eq!(view.handle_range(&snapshot(nodes, 10), 0, 0), Applied::Counts);
    view
}

#[test]
fn a_node_that_vanishes_alone_is_gone_at_once() {
    let mut view = view_of(&["a", "b", "c"]);
    view.handle_events(&[gone("b", 11)], 1_000);
    assert_eq!((names(&view), view.revision()), (vec!["a".into(), "c".into()], 11));
    view.handle_events(&[Event::Put(node("d", 12)), gone("d", 13), Event::Put(node("b", 14))], 2_000);
    assert_eq!(names(&view), ["a", "b", "c"]);
}

/// Goal: what a fault of etcd does to many nodes at once removes none, for a while.
#[test]
fn nodes_that_vanish_together_are_held() {
    let mut view = view_of(&["a", "b", "c"]);
    view.handle_events(&[gone("a", 11), gone("b", 11)], 1_000);
    assert_eq!(names(&view), ["(a)", "(b)", "c"]);
    assert_eq!(view.poll_timeout(), Some(31_000));
    view.handle_events(&[Event::Put(node("a", 12))], 5_000);
    view.handle_timeout(31_000);
    assert_eq!(names(&view), ["a", "c"], "one has come back, one has not");
    // One after the other is no better.
    let mut view = view_of(&["a", "b", "c"]);
    view.handle_events(&[gone("a", 11)], 1_000);
    view.handle_events(&[gone("b", 12)], 2_000);
    assert_eq!(names(&view), ["(b)", "c"]);
}

#[test]
fn the_last_nodes_are_held_until_another_lives() {
    let mut view = view_of(&["a", "b"]);
    assert_eq!(view.handle_range(&snapshot(&[], 12), 10, 1_000), Applied::Counts);
    assert_eq!((names(&view), view.poll_timeout()), (vec!["(a)".into(), "(b)".into()], None));
    view.handle_timeout(1_000_000);
    assert_eq!(names(&view), ["(a)", "(b)"]);
    view.handle_events(&[Event::Put(node("b", 13))], 1_000_001);
    view.handle_timeout(1_000_002);
    assert_eq!(names(&view), ["b"]);
}

#[test]
fn nodes_that_say_so_leave_at_once_and_so_do_drained_ones() {
    let mut view = view_of(&["a", "b"]);
    view.handle_events(
        &[
            Event::Put(entry("nodes/a", &registration("a", "leaving"), 11)),
            Event::Put(entry("orders/b", br#"{"drained":true,"weight":9}"#, 12)),
        ],
        0,
    );
    let [a, b] = &view.members()[..] else { panic!("two nodes") };
    assert!(a.leaving && b.drained && b.weight == 9);
    view.handle_events(&[gone("a", 13), gone("b", 14)], 0);
    assert!(view.members().is_empty());
    // The order outlives the node.
    view.handle_events(&[Event::Put(node("b", 15))], 0);
    assert!(view.members()[0].drained);
    view.handle_events(&[Event::Delete { key: "orders/b".into(), revision: 16 }], 0);
    assert_eq!((view.members()[0].drained, view.members()[0].weight), (false, 1));
}

#[test]
fn lost_data_and_another_etcd_are_told_from_a_late_answer() {
    let mut view = view_of(&["a"]);
    view.handle_events(&[Event::Put(node("b", 12))], 0);
    assert_eq!(view.handle_range(&snapshot(&["a"], 11), 10, 0), Applied::Overtaken);
    assert_eq!(names(&view), ["a", "b"]);
    assert_eq!(view.handle_range(&snapshot(&[], 3), 12, 0), Applied::Lost);
    assert_eq!((names(&view), view.revision()), (vec!["(a)".into(), "(b)".into()], 3));
    let other = Snapshot { cluster_id: 2, ..snapshot(&["a"], 900) };
    assert_eq!(view.handle_range(&other, 3, 0), Applied::Lost);
    assert_eq!((names(&view), view.cluster_id()), (vec!["a".into(), "(b)".into()], 2));
}

#[test]
fn a_restored_view_counts_until_etcd_answers() {
    let (nodes, orders) = view_of(&["a", "b", "c"]).to_save();
    let mut view = View::restored(HOLD_MS, 1, nodes, orders);
    assert_eq!((names(&view).len(), view.revision()), (3, 0));
    assert_eq!(view.handle_range(&snapshot(&["a", "c"], 5), 0, 0), Applied::Counts);
    assert_eq!(names(&view), ["a", "c"]);
}

#[test]
fn values_that_do_not_count_are_told_and_take_nothing_away() {
    let mut view = view_of(&["a"]);
    let bad = [
        entry("nodes/a", b"}", 11),
        entry("nodes/x y", b"{}", 11),
        entry("loads/a", b"{}", 11),
        entry("nodes/b", &registration("b/c", "up"), 11),
        entry("orders/a", br#"{"weight":0}"#, 11),
        entry("nodes", b"", 11),
    ];
    view.handle_events(&bad.map(Event::Put), 0);
    assert_eq!(names(&view), ["a"], "its last good value counts");
    let told: Vec<_> = view.skipped().map(|(key, _)| key.to_owned()).collect();
    assert_eq!(told, ["loads/a", "nodes", "nodes/a", "nodes/b", "nodes/x y", "orders/a"]);
    view.handle_events(
        &[Event::Put(node("a", 12)), Event::Delete { key: "nodes/b".into(), revision: 13 }],
        0,
    );
    assert_eq!(view.skipped().count(), 4);
    let many: Vec<_> = (0..100).map(|number| Event::Put(node(&format!("n{number}"), 14))).collect();
    view.handle_events(&many, 0);
    assert_eq!((view.members().len(), view.skipped().count()), (64, 16));
}

/// What etcd has, and what happened to it since a revision.
#[derive(Debug, Default)]
struct Model {
    revision: i64,
    nodes: BTreeMap<String, i64>,
    log: Vec<Event>,
}

impl Model {
    fn toggle(&mut self, name: &str) {
        self.revision += 1;
        let event = match self.nodes.remove(name) {
            Some(_) => gone(name, self.revision),
            None => {
                self.nodes.insert(name.into(), self.revision);
                Event::Put(node(name, self.revision))
            }
        };
        self.log.push(event);
    }

    fn snapshot(&self) -> Snapshot {
        let entries = self.nodes.iter().map(|(name, revision)| node(name, *revision)).collect();
        Snapshot { cluster_id: 1, revision: self.revision, entries }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Ranges and watches, late and repeated, in any mixture: the live nodes are those of etcd at the view's revision; others
    /// are held, and not for ever; nothing but an orderly end empties a view.
    #[test]
    fn the_view_follows_etcd(
        steps in prop::collection::vec((0..6_u8, 0..6_usize, 0..20_000_u64), 1..120),
    ) {
        let all = ["a", "b", "c", "d", "e", "f"];
        let mut model = Model::default();
        let mut view = View::new(HOLD_MS);
        let mut late: Vec<(Snapshot, i64)> = Vec::new();
        let (mut now_ms, mut history) = (0, BTreeMap::from([(0, Vec::new())]));
        for (step, number, pause_ms) in steps {
            now_ms += pause_ms;
            let had_some = !view.members().is_empty();
            match step {
                0 => late.push((model.snapshot(), view.revision())),
                1 if !late.is_empty() => {
                    let (snapshot, asked_at) = late.remove(0);
                    let applied = view.handle_range(&snapshot, asked_at, now_ms);
                    prop_assert_ne!(applied, Applied::Lost);
                }
                2 => view.handle_timeout(now_ms),
                3 => {
                    // A watch from the view's revision on, in two parts, the first of them twice.
                    let from = model.log.iter().position(|event| event.revision() > view.revision());
                    let news = &model.log[from.unwrap_or(model.log.len())..];
                    let (first, second) = news.split_at(number.min(news.len()));
                    view.handle_events(first, now_ms);
                    view.handle_events(first, now_ms);
                    view.handle_events(second, now_ms);
                }
                _ => {
                    model.toggle(all[number]);
                    history.insert(model.revision, model.nodes.keys().cloned().collect::<Vec<_>>());
                }
            }
            let members = view.members();
            prop_assert!(!had_some || !members.is_empty());
            let live: Vec<_> = members.iter().filter(|one| !one.held).map(|one| one.name.clone()).collect();
            prop_assert_eq!(&live, &history[&view.revision()]);
            // Without news, and with a live node, those that are held go.
            let mut later = view.clone();
            later.handle_timeout(now_ms + HOLD_MS);
            if !live.is_empty() {
                prop_assert!(later.members().iter().all(|one| !one.held));
                prop_assert_eq!(later.poll_timeout(), None);
            }
        }
    }

    /// Any bytes as keys and values: no panic, no more nodes than fit, and what is told stays short.
    #[test]
    fn hostile_values_do_no_harm(
        entries in prop::collection::vec(("(nodes/|orders/|)\\PC{0,80}", prop::collection::vec(any::<u8>(), 0..60)), 0..40),
        weights in prop::collection::vec(any::<i64>(), 0..70),
    ) {
        let mut entries: Vec<_> = entries.iter().map(|(key, value)| entry(key, value, 1)).collect();
        for (at, weight) in weights.iter().enumerate() {
            let value = format!(r#"{{"version":1,"to":"http://h{at}","weight":{}}}"#, weight % 200);
            entries.push(entry(&format!("nodes/{at}"), value.as_bytes(), 1));
        }
        let mut view = View::new(HOLD_MS);
        view.handle_range(&Snapshot { cluster_id: 1, revision: 1, entries: entries.clone() }, 0, 0);
        view.handle_events(&entries.into_iter().map(Event::Put).collect::<Vec<_>>(), 0);
        prop_assert!(view.members().len() <= 64);
        prop_assert!(view.skipped().count() <= 16);
        for member in view.members() {
            prop_assert!((1..=100).contains(&member.weight));
            let text = serde_json::to_vec(&member).unwrap();
            prop_assert!(text.len() < 1_500);
        }
        for (name, registration) in view.to_save().0 {
            prop_assert_eq!(Registration::parse(&registration.to_value()), Ok(registration), "{}", name);
        }
    }
}
