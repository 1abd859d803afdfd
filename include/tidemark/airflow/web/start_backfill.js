// Starts the backfill that the page shows, as Airflow's own dialog would: through Airflow's API, with the login and the
// permissions of whoever clicks. What comes back is shown as text, never as markup.
const button = document.querySelector("button[data-request]");
const said = document.querySelector("output");

function reason(status, answer) {
  const detail = answer?.detail;
  if (typeof detail === "string") return detail;
  if (Array.isArray(detail)) return detail.map((one) => one.msg ?? "").join("; ");
  return status === 403 ? "you may not start backfills of this DAG" : `Airflow answered with status ${status}`;
}

async function start() {
  button.disabled = true;
  said.textContent = "Asking Airflow …";
  try {
    const answer = await fetch(button.dataset.api, {
      method: "POST",
      credentials: "same-origin",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: button.dataset.request,
    });
    const content = await answer.json().catch(() => null);
    if (!answer.ok) throw new Error(reason(answer.status, content));
    said.textContent = `Backfill ${content.id} has begun.`;
    document.querySelector("#report").hidden = false;
  } catch (error) {
    said.textContent = `It was not started: ${error.message}`;
    button.disabled = false;
  }
}

button?.addEventListener("click", start);
