// Many answers at once, beginning at the given time: how many were answered, and what else happened.
export default async function (deniable, { canonical, sha256, values, answers, start, broken }) {
  const store = deniable.browserStore();
  const survey = await deniable.readSurvey(new TextEncoder().encode(canonical), sha256);
  const client = await deniable.openClient(survey, { store, limits: { epsilon: Infinity } });
  if (broken) tear(store);
  await new Promise((resolve) => setTimeout(resolve, start - Date.now()));
  const ended = await Promise.allSettled(Array.from({ length: answers }, () => client.answer(values)));
  const refused = ended.filter((end) => end.status === "rejected").map((end) => end.reason.name);
  return { cohort: client.cohort, answered: answers - refused.length, refused: [...new Set(refused)] };
}

// The twin that must fail: it reads in one transaction and writes in another.
function tear(store) {
  const whole = store.update;
  store.update = async (key, change) => {
    const value = change(await whole(key, (kept) => kept));
    return whole(key, () => value);
  };
}
