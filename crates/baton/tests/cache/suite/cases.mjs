// Cases in the words of the suite, for what is younger than its last release: RFC 9111 on Age and on errors, RFC 9213,
// RFC 5861.

// What the cases of the release expect, where RFC 9111 says otherwise. `age-parse-*`: an Age that is no number does not
// count, and the first of several does (section 5.1).
const EXPECTED = new Map([
  'age-parse-nonnumeric',
  'age-parse-negative',
  'age-parse-float',
  'age-parse-prefix-twoline',
  'age-parse-dup-0',
  'age-parse-dup-0-twoline',
  'age-parse-dup-old',
  'age-parse-parameter',
  'age-parse-numeric-parameter'
].map(id => [id, 'cached']))

// Cases in which the origin breaks off. The release looks for one of the origin's fields in the answer, which no error of
// a cache can have.
const BROKEN_OFF = /^stale-close-/

// Questions without a right answer: a 304 with another tag than that asked about.
const OPEN = new Set(['304-etag-update-response-ETag'])

// Corrects a case of the release.
export function correct (test) {
  if (EXPECTED.has(test.id)) {
    test.requests[1].expected_type = EXPECTED.get(test.id)
  }
  if (BROKEN_OFF.test(test.id)) {
    const last = test.requests[1]
    delete last.expected_type
    Object.assign(last, {
      expected_status: 502,
      check_body: false,
      expected_response_headers_missing: ['server-request-count']
    })
  }
  if (OPEN.has(test.id)) {
    test.kind = 'check'
  }
  return test
}

// A response with these fields, which are not compared, and after three seconds what the second request gets.
function after (id, fields, type, rest = {}) {
  const responseHeaders = fields.map(([name, value]) => [name, value, false])
  return {
    id,
    name: id,
    kind: 'required',
    requests: [
      { response_headers: responseHeaders, setup: true, pause_after: true },
      { expected_type: type, ...rest }
    ]
  }
}

const CDN = 'CDN-Cache-Control'
const CC = 'Cache-Control'

export const cases = [
  after('rfc9213-max-age', [[CDN, 'max-age=60']], 'cached'),
  after('rfc9213-longer', [[CC, 'max-age=1'], [CDN, 'max-age=60']], 'cached'),
  after('rfc9213-shorter', [[CC, 'max-age=60'], [CDN, 'max-age=1']], 'not_cached'),
  after('rfc9213-instead-of-no-store', [[CC, 'no-store'], [CDN, 'max-age=60']], 'cached'),
  after('rfc9213-instead-of-expires', [['Expires', 60], [CDN, 'max-age=1']], 'not_cached'),
  after('rfc9213-no-store', [[CC, 'max-age=60'], [CDN, 'no-store']], 'not_cached'),
  after('rfc9213-private', [[CC, 'max-age=60'], [CDN, 'private']], 'not_cached'),
  after('rfc9213-no-cache', [[CC, 'max-age=60'], [CDN, 'no-cache']], 'not_cached'),
  after('rfc9213-malformed', [[CC, 'max-age=60'], [CDN, 'max-age=1, &']], 'cached'),
  after('rfc9213-wrong-type', [[CC, 'max-age=60'], [CDN, 'max-age="60"']], 'not_cached'),
  after('rfc5861-stale-while-revalidate', [[CC, 'max-age=1, stale-while-revalidate=60']], 'cached'),
  after('rfc5861-stale-while-revalidate-over', [[CC, 'max-age=1, stale-while-revalidate=1']], 'not_cached'),
  after('rfc5861-stale-if-error', [[CC, 'max-age=1, stale-if-error=60']], 'cached', {
    response_status: [503, 'Service Unavailable'],
    expected_status: 200
  }),
  after('rfc5861-stale-if-error-over', [[CC, 'max-age=1, stale-if-error=1']], 'not_cached', {
    response_status: [503, 'Service Unavailable'],
    expected_status: 503
  }),
  after('rfc9111-4-3-4-weak-mark', [[CC, 'max-age=1'], ['ETag', 'W/"a"']], 'etag_validated', {
    response_headers: [['ETag', 'W/"a"']],
    expected_status: 200
  })
]
