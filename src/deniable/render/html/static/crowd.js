// A simulated crowd, a share of which holds one value, and estimates of that share.

/**
 * Return estimates for crowds of each of `sizes`.
 *
 * share: share of clients that hold the value. {p, q}: probability that a bit is sent as 1 if it is 0
 * or 1 in the Bloom filter, after both kinds of noise. bits, hashes: size of the Bloom filter. Other
 * clients hold many other values, so that their bits are 1 with a known probability.
 */
export function grow(share, { p, q }, { bits, hashes, sizes }, random = Math.random) {
  const hit = 1 - (1 - 1 / bits) ** hashes, other = hit * q + (1 - hit) * p;
  const gain = hashes * (q - other), points = [];
  let clients = 0, sum = 0, squares = 0;
  for (const size of sizes) {
    for (; clients < size; clients++) {
      const holds = random() < share;
      let ones = 0;
      for (let j = 0; j < hashes; j++) ones += random() < (holds || random() < hit ? q : p) ? 1 : 0;
      sum += ones;
      squares += ones * ones;
    }
    const mean = sum / clients, deviation = Math.sqrt((squares / clients - mean * mean) / clients);
    const estimate = (mean - hashes * other) / gain, reach = 1.96 * deviation / gain;
    points.push({ clients, estimate, low: estimate - reach, high: estimate + reach });
  }
  return points;
}
