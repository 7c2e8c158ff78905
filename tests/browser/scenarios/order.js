// What happens in which order while one answer is made; then with the storage cleared underneath.
export default async function ({ readSurvey, openClient, browserStore }, { canonical, sha256, values }) {
  const survey = await readSurvey(new TextEncoder().encode(canonical), sha256);
  const client = await openClient(survey), happened = [];
  const transaction = IDBDatabase.prototype.transaction, draw = crypto.getRandomValues.bind(crypto);
  IDBDatabase.prototype.transaction = function (stores, mode, options) {
    const made = transaction.call(this, stores, mode, options);
    happened.push(`${mode}, ${made.durability}`);
    made.addEventListener("complete", () => happened.push("complete"));
    return made;
  };
  crypto.getRandomValues = (array) => (happened.push("noise"), draw(array));
  await client.answer(values);
  await browserStore().update("client", () => undefined);
  happened.push("cleared");
  await client.answer(values).catch((error) => happened.push(error.name));
  return happened;
}
