// Starts what the page shows, as Airflow's own dialogs would: through Airflow's API, with the login and the permissions
// of whoever clicks. What comes back is shown as text, never as markup.
const button = document.querySelector("button[data-request]");
const said = document.querySelector("output");

function reason(status, answer) {
  const detail = answer?.detail;
  if (typeof detail === "string") return detail;
  if (Array.isArray(detail)) return detail.map((one) => one.msg ?? "").join("; ");
  return status === 403 ? "you may not do that with this DAG" : `Airflow answered with status ${status}`;
}

async function ask(address, method, body) {
  const answer = await fetch(address, {
    method,
    credentials: "same-origin",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body,
  });
  const content = await answer.json().catch(() => null);
  if (!answer.ok) throw new Error(reason(answer.status, content));
  return content;
}

async function start() {
  let begun = false;
  button.disabled = true;
  said.textContent = "Asking Airflow …";
  try {
    const answer = await ask(button.dataset.api, "POST", button.dataset.request);
    begun = true;
    said.textContent = `${button.dataset.what} ${answer[button.dataset.id]} has begun.`;
    document.querySelector("#report")?.removeAttribute("hidden");
    if (document.querySelector("#unpause")?.checked)
      await ask(`${button.dataset.dag}?update_mask=is_paused`, "PATCH", JSON.stringify({ is_paused: false }));
  } catch (error) {
    said.textContent = begun
      ? `${button.dataset.what} is there, and the DAG is still paused: ${error.message}`
      : `It was not started: ${error.message}`;
    button.disabled = begun;
  }
}

button?.addEventListener("click", start);
