// A simulated crowd, of which some share holds one value, and what is learnt of that share.

/**
 * Estimates while the crowd grows to each of `sizes`.
 *
 * share : of people who hold the value. noise : {p, q}, how often a bit is sent as 1 if it is not
 * set, if it is, both kinds of noise together. bits, hashes : of the Bloom filter. Other people hold
 * many other values, so that each of their bits is set by chance, and how often is known.
 */
export function grow(share, { p, q }, { bits, hashes, sizes }, random = Math.random) {
  const hit = 1 - (1 - 1 / bits) ** hashes, other = hit * q + (1 - hit) * p;
  const gain = hashes * (q - other), points = [];
  let people = 0, sum = 0, squares = 0;
  for (const size of sizes) {
    for (; people < size; people++) {
      const holds = random() < share;
      let ones = 0;
      for (let j = 0; j < hashes; j++) ones += random() < (holds || random() < hit ? q : p) ? 1 : 0;
      sum += ones;
      squares += ones * ones;
    }
    const mean = sum / people, deviation = Math.sqrt((squares / people - mean * mean) / people);
    const estimate = (mean - hashes * other) / gain, reach = 1.96 * deviation / gain;
    points.push({ people, estimate, low: estimate - reach, high: estimate + reach });
  }
  return points;
}
