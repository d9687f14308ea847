//! Colours, for light and dark schemes, as one style sheet that all figures of a page share.

/// How many lines have a colour of their own; further ones are dashed.
pub(super) const COLOURS: usize = 8;

/// With the colours used up, lines are dashed.
pub(super) const DASHES: [&str; 3] = ["", "6 3", "2 3"];

/// The classes of elements, and the colours in both schemes.
///
/// Colours of lines are those that colour-blind readers can distinguish (Okabe and Ito, 2008), some darker on white and
/// lighter on black, for a contrast of 3 to 1 (WCAG 2.2, 1.4.11).
pub(super) const STYLE: &str = "\
.figure{--paper:#fff;--ink:#111;--grid:#ddd;--published:#b00020;--heat:#0072b2;font:13px sans-serif;\
max-width:100%;height:auto}\
.figure .s0{--c:#0072b2}.figure .s1{--c:#c84e00}.figure .s2{--c:#008a66}.figure .s3{--c:#b2568a}\
.figure .s4{--c:#2a8fc4}.figure .s5{--c:#a87400}.figure .s6{--c:#000}.figure .s7{--c:#7a7a00}\
@media(prefers-color-scheme:dark){.figure{--paper:#16181c;--ink:#eee;--grid:#3a3d44;--published:#ff8a95;--heat:#3d9be0}\
.figure .s0{--c:#4da6e0}.figure .s1{--c:#ff8c42}.figure .s2{--c:#2fcfa0}.figure .s3{--c:#e79ac6}\
.figure .s4{--c:#9ad4f5}.figure .s5{--c:#f2b733}.figure .s6{--c:#fff}.figure .s7{--c:#cfcf4a}}\
.figure .paper{fill:var(--paper)}.figure text{fill:var(--ink)}.figure .t{font-weight:bold;font-size:15px}\
.figure .g{stroke:var(--grid)}.figure .a{stroke:var(--ink);fill:none}\
.figure .l{stroke:var(--c);stroke-width:2;fill:none}.figure .w{stroke:var(--c);stroke-width:1.5}\
.figure .wb{stroke:var(--ink);stroke-width:1.5}\
.figure .f,.figure text.f{fill:var(--c)}.figure text.c{fill:var(--c);font-size:16px;font-weight:bold}\
.figure .d{fill:var(--paper);stroke:var(--published);stroke-width:2}\
.figure .p{stroke:var(--published);stroke-width:1.5;stroke-dasharray:4 3;fill:none}\
.figure text.p{stroke:none;fill:var(--published)}\
.figure .h{fill:var(--heat)}.figure .x{fill:none;stroke:var(--grid);stroke-dasharray:3 3}";
