<?php

/** @generate-class-entries */

/**
 * What this worker did since it started: how many reads of files gave a file string ("mapped") or not, by reason, and
 * how many file strings were named in responses or expanded.
 *
 * @return array<string, bool|int>
 */
function baton_status(): array {}
