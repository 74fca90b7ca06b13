// What the Vercel AI SDK makes of the server: `node vercel.mjs URL QUESTION` prints one JSON object.
import { createOpenAI } from "@ai-sdk/openai";
import { embed, generateText, streamText } from "ai";

const [url, question] = process.argv.slice(2);
const trivet = createOpenAI({ baseURL: `${url}/v1`, apiKey: "any" });
const model = trivet.chat("trivet");

const whole = await generateText({ model, prompt: question, temperature: 0, maxRetries: 0 });
const stream = streamText({ model, prompt: question, temperature: 0, maxRetries: 0 });
let streamed = "";
for await (const text of stream.textStream) streamed += text;
const history = await generateText({
  model,
  maxRetries: 0,
  system: "Be brief.",
  messages: [
    { role: "user", content: "Where is Hollin?" },
    { role: "assistant", content: "At sea." },
    { role: "user", content: question },
  ],
});
const { embedding } = await embed({ model: trivet.embedding("trivet"), value: "a lighthouse", maxRetries: 0 });

const refused = async (asked) => {
  try {
    await generateText({ model: asked, prompt: question, maxRetries: 0 });
    return "";
  } catch (error) {
    return `${error.statusCode} ${error.message}`;
  }
};
const urls = (sources) => sources.map((source) => source.url);

console.log(
  JSON.stringify({
    whole: whole.text,
    streamed,
    finish: [whole.finishReason, await stream.finishReason],
    sources: [urls(whole.sources), urls(await stream.sources)],
    history: history.text.length > 0,
    embedded: embedding.length,
    error: await refused(trivet.chat("gpt-9")),
    responses: await refused(trivet("trivet")),
  }),
);
