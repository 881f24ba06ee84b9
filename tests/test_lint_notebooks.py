"""The lint on whole notebooks: as such jobs are written at first, and as they should be.

A line that ends in ``#!`` and codes must have these findings; all other lines none.
"""

from __future__ import annotations

import re

import pytest

from nbckpt.lint import CODES, lint, read_cell_page
from nbckpt.source.cells import parse_body

MARK = re.compile(r"\s*#! ([a-z -]+)$", re.MULTILINE)

API_AT_FIRST = """
%load_ext nbckpt
import json
import time
import uuid
import requests
BASE = "http://localhost:9000"
# ---
%%step load --reads orders.json
with open("orders.json") as file:
    orders = json.load(file)
print(len(orders), "orders")
# ---
def post(order):
    for attempt in range(5):  #! retry-loop
        try:
            answer = requests.post(f"{BASE}/charges", json=order, timeout=5)
            break
        except requests.Timeout:
            time.sleep(2**attempt)
    return answer.json()
# ---
%%step charge
charged = []
for order in orders:
    order["key"] = str(uuid.uuid4())
    charged.append(post(order))  #! undeclared-effect
# ---
%%step receipts
for receipt in charged:
    with open("receipts.log", "a") as log:  #! append
        log.write(json.dumps(receipt))
# ---
%%step summary
total = sum(receipt["amount"] for receipt in charged)
with open("summary.txt", "w") as file:  #! undeclared-file
    file.write(str(total))
# ---
%%step bye
print("all done")
"""

API_AS_IT_SHOULD_BE = """
%load_ext nbckpt
import json
import nbckpt
import requests
BASE = "http://localhost:9000"
# ---
%%step load --reads orders.json
with open("orders.json") as file:
    orders = json.load(file)
print(len(orders), "orders")
# ---
def post(order, key):
    answer = requests.post(
        f"{BASE}/charges",
        json=order,
        headers={"Idempotency-Key": key},
        timeout=5,
    )
    answer.raise_for_status()
    return answer.json()
def find(key):
    answer = requests.get(f"{BASE}/charges", params={"key": key}, timeout=5)
    found = answer.json()
    return found[0] if found else None
# ---
%%step charge --effects payments
charged = []
for order in nbckpt.items(orders, key=lambda o: o["id"], keep=("charged",)):
    receipt = nbckpt.effect(
        f"charge-{order['id']}",
        perform=lambda key: post(order, key),
        lookup=find,
    )
    charged.append(receipt)
# ---
%%step receipts --writes receipts.log
with open("receipts.log", "w") as log:
    for receipt in charged:
        log.write(json.dumps(receipt))
# ---
%%step summary --writes summary.txt
total = sum(receipt["amount"] for receipt in charged)
with open("summary.txt", "w") as file:
    file.write(str(total))
# ---
print("all done")
"""

MIGRATION_AT_FIRST = """
%load_ext nbckpt
import sqlite3
import shutil
from datetime import datetime
import requests
# ---
db = sqlite3.connect("shop.db")
db.execute("create table if not exists migration (name text primary key)")
# ---
%%step backup
shutil.copy("shop.db", f"shop-{datetime.now():%Y%m%d}.db")  #! undeclared-file
# ---
%%step columns
try:
    db.execute("alter table person add column first text")  #! undeclared-effect
except:  #! swallowed
    print("is there already")
# ---
%%step split
rows = db.execute("select id, name from person").fetchall()
for number, name in rows:
    first, _, last = name.partition(" ")
    db.execute(  #! undeclared-effect
        "update person set first = ?, last = ? where id = ?",
        (first, last, number),
    )
db.commit()
# ---
%%step tell
requests.post(  #! undeclared-effect
    "http://localhost:9000/hooks",
    json={"moved": len(rows), "at": str(datetime.now())},
)
# ---
db.execute("insert into migration values ('split')")  #! effect-in-plain-cell
"""

MIGRATION_AS_IT_SHOULD_BE = """
%load_ext nbckpt
import sqlite3
import shutil
import nbckpt
import requests
# ---
db = sqlite3.connect("shop.db")
db.execute("create table if not exists migration (name text primary key)")
# ---
%%step backup --writes shop-before.db
shutil.copy("shop.db", "shop-before.db")
# ---
%%step columns
with nbckpt.transaction(db, "columns") as step:
    if step.pending:
        db.execute("alter table person add column first text")
# ---
%%step split
rows = db.execute("select id, name from person").fetchall()
with nbckpt.transaction(db, "split") as step:
    if step.pending:
        for number, name in rows:
            first, _, last = name.partition(" ")
            db.execute(
                "update person set first = ?, last = ? where id = ?",
                (first, last, number),
            )
        step.emit({"moved": len(rows)})
# ---
%%step tell --effects hooks
def send(message):
    requests.post("http://localhost:9000/hooks", json=message, timeout=5)
nbckpt.relay(db, send)
# ---
%%step noted
db.execute("insert or ignore into migration values ('split')")
"""

TRAINING_AT_FIRST = """
%load_ext nbckpt
import numpy as np
import nbckpt
import torch
from tqdm import tqdm
# ---
%%step data
rng = np.random.default_rng(7)
points = rng.normal(size=(1000, 8))
target = points @ rng.normal(size=8)
# ---
%%step model
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
# ---
%%step train
losses, best = [], float("inf")
bar = tqdm(total=50)
for epoch in nbckpt.items(range(50)):  #! no-keep
    optimizer.zero_grad()
    guess = model(torch.tensor(points).float())
    loss = ((guess[:, 0] - torch.tensor(target).float()) ** 2).mean()
    loss.backward()
    optimizer.step()
    losses.append(float(loss))
    best = min(best, float(loss))
    bar.update(1)
# ---
%%step save
torch.save(model.state_dict(), "model.pt")  #! undeclared-file
torch.save(model.state_dict(), f"model-{best}.pt")
# ---
%%step report
figure = plot(losses)  #! used-before-made
figure.savefig("losses.png")  #! undeclared-file
# ---
import matplotlib.pyplot as plt
def plot(values):
    figure, axes = plt.subplots()
    axes.plot(values)
    return figure
"""

TRAINING_AS_IT_SHOULD_BE = """
%load_ext nbckpt
import numpy as np
import matplotlib.pyplot as plt
import nbckpt
import torch
# ---
def plot(values):
    figure, axes = plt.subplots()
    axes.plot(values)
    return figure
# ---
%%step data
rng = np.random.default_rng(7)
points = rng.normal(size=(1000, 8))
target = points @ rng.normal(size=8)
# ---
%%step model
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
# ---
%%step train
losses, best = [], float("inf")
for epoch in nbckpt.items(range(50), keep=("model", "optimizer", "losses", "best")):
    optimizer.zero_grad()
    guess = model(torch.tensor(points).float())
    loss = ((guess[:, 0] - torch.tensor(target).float()) ** 2).mean()
    loss.backward()
    optimizer.step()
    losses.append(float(loss))
    best = min(best, float(loss))
# ---
%%step save --writes model.pt
torch.save(model.state_dict(), "model.pt")
# ---
%%step report --writes losses.png
figure = plot(losses)
figure.savefig("losses.png")
"""

NIGHTLY_AT_FIRST = """
%load_ext nbckpt
import os
import smtplib
import subprocess
import time
from email.message import EmailMessage
import pandas as pd
import nbckpt
# ---
stamp = time.time()
day = time.strftime("%Y-%m-%d")
# ---
%%step fetch
!rsync -a server:/exports/ exports/  #! undeclared-effect
files = sorted(os.listdir("exports"))
# ---
%%step load
parts = [pd.read_csv(f"exports/{name}") for name in files]
table = pd.concat(parts)
# ---
%%step build --effects make
status = subprocess.run(["make", "report"], check=False).returncode
# ---
%%step export --writes report.csv
table.to_csv("report.csv", index=False)
table.to_csv("all-reports.csv", mode="a", header=False)  #! append
# ---
def mail(text):
    message = EmailMessage()
    message.set_content(text)
    with smtplib.SMTP("localhost") as server:
        server.send_message(message)
# ---
%%step send --effects mail
nbckpt.effect(f"report-{stamp}", perform=lambda key: mail("done"))  #! unstable-key no-lookup
# ---
%%step tell --effects mail
nbckpt.effect(f"told-{day}", perform=lambda key: mail(day), dedup="24h")  #! unstable-key
# ---
%%step alarm
try:
    mail("finished")  #! undeclared-effect
except Exception:  #! swallowed
    pass
# ---
!rm -rf exports  #! effect-in-plain-cell
"""

NIGHTLY_AS_IT_SHOULD_BE = """
%load_ext nbckpt
import os
import smtplib
import subprocess
from datetime import date
from email.message import EmailMessage
import pandas as pd
import nbckpt
# ---
%%step day
day = str(date.today())
# ---
%%step fetch --writes exports/*.csv
!rsync -a server:/exports/ exports/
files = sorted(os.listdir("exports"))
# ---
%%step load
parts = [pd.read_csv(f"exports/{name}") for name in files]
table = pd.concat(parts)
# ---
%%step build --reads Makefile --writes report.pdf
status = subprocess.run(["make", "report"], check=False).returncode
# ---
%%step export --writes report.csv
table.to_csv("report.csv", index=False)
# ---
def mail(text):
    message = EmailMessage()
    message.set_content(text)
    with smtplib.SMTP("localhost") as server:
        server.send_message(message)
# ---
%%step send --effects mail
nbckpt.effect(
    f"report-{day}",
    perform=lambda key: mail("done"),
    dedup="24h",
)
# ---
!ls -l exports
!git rev-parse HEAD
"""

REFACTOR_AT_FIRST = """
%load_ext nbckpt
import re
import subprocess
from pathlib import Path
import nbckpt
# ---
%%step files
files = sorted(Path("src").rglob("*.py"))
# ---
%%step rewrite
changed, failed = 0, {}
for path in nbckpt.items(files, key=str):  #! no-keep
    text = path.read_text()
    new = re.sub(r"from utils import", "from lib import", text)
    if new != text:
        path.write_text(new)  #! undeclared-file
        changed += 1
    else:
        failed[path] = "nothing to change"
# ---
%%step test
result = subprocess.run(["pytest", "-q"], check=False)  #! undeclared-effect
# ---
%%step commit
!git add -A  #! undeclared-effect
!git commit -m "Move the imports"
# ---
%%step again
for attempt in range(3):  #! retry-loop
    try:
        subprocess.run(["git", "push"], check=True)  #! undeclared-effect
        break
    except subprocess.CalledProcessError:
        continue
"""

REFACTOR_AS_IT_SHOULD_BE = """
%load_ext nbckpt
import re
import subprocess
from pathlib import Path
import nbckpt
# ---
%%step files
files = sorted(Path("src").rglob("*.py"))
# ---
%%step rewrite --writes src/**/*.py
changed, failed = 0, {}
for path in nbckpt.items(files, key=str, keep=["changed", "failed"]):
    text = path.read_text()
    new = re.sub(r"from utils import", "from lib import", text)
    if new != text:
        path.write_text(new)
        changed += 1
    else:
        failed[path] = "nothing to change"
# ---
%%step test --effects pytest
result = subprocess.run(["pytest", "-q"], check=False)
# ---
%%step commit --effects git
def commit(key):
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-m", f"Move the imports\\n\\n{key}"], check=True)
def committed(key):
    found = subprocess.run(
        ["git", "log", "--grep", key, "--format=%H"],
        check=True,
        capture_output=True,
        text=True,
    )
    return found.stdout.strip() or None
nbckpt.effect("commit", perform=commit, lookup=committed)
# ---
%%step push --effects git --retries 3 --backoff 5s
subprocess.run(["git", "push"], check=True)
"""

SCIENCE = """
%load_ext nbckpt
import pandas as pd
import numpy as np
import matplotlib.pyplot as plt
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
# ---
%matplotlib inline
pd.set_option("display.max_rows", 20)
plt.rcParams["figure.figsize"] = (8, 4)
# ---
%%step load --reads flights.csv
flights = pd.read_csv("flights.csv", parse_dates=["date"])
flights.head()
# ---
%%step clean --check "len(flights) > 0"
flights = flights.dropna(subset=["delay"])
flights["late"] = flights["delay"] > 15
flights.info()
# ---
%%step explore
by_month = flights.groupby(flights["date"].dt.month)["late"].mean()
by_month.plot(kind="bar")
plt.show()
# ---
%%step fit
model = LinearRegression()
model.fit(flights[["distance"]], flights["delay"])
scores = cross_val_score(model, flights[["distance"]], flights["delay"], cv=5)
print(f"R2 {scores.mean():.3f}")
# ---
%%step table
summary = by_month.to_frame().to_html()
text = by_month.to_json()
record = by_month.to_dict()
# ---
%%step draws
rng = np.random.default_rng(1)
samples = [rng.normal() for _ in range(100)]
np.mean(samples)
# ---
%%step boot
counts = {}
for place in range(10):
    counts[place] = rng.choice(samples, 50).mean()
    try:
        ratio = counts[place] / samples[place]
    except ZeroDivisionError:
        ratio = 0
# ---
summary
"""

SCRAPING_AT_FIRST = """
%load_ext nbckpt
import asyncio
import json
import random
from pathlib import Path
import httpx
import nbckpt
import sqlite3
# ---
store = sqlite3.connect("pages.db")
store.execute("create table if not exists page (url text primary key, body text)")
# ---
class Crawler:
    def __init__(self, base):
        self.client = httpx.Client(base_url=base)
    def page(self, url):
        return self.client.get(url).text
    def report(self, count):
        httpx.post("http://localhost:9000/done", json={"pages": count})
crawler = Crawler("http://localhost:9001")
# ---
%%step seeds
todo = json.loads(Path("seeds.json").read_text())
random.shuffle(todo)
# ---
%%step crawl
pages = {}
for url in nbckpt.items(todo):  #! no-keep
    pages[url] = crawler.page(url)
    store.execute("insert into page values (?, ?)", (url, pages[url]))  #! undeclared-effect
# ---
%%step images
async def fetch(client, url):
    answer = await client.get(url)
    return answer.content
async with httpx.AsyncClient() as client:
    blobs = await asyncio.gather(*(fetch(client, url) for url in todo))
for number, blob in enumerate(blobs):
    Path(f"images/{number}.png").write_bytes(blob)  #! undeclared-file
# ---
%%step tell
crawler.report(len(pages))  #! undeclared-effect
# ---
%%step ask
ticket = nbckpt.idempotency_key(f"crawl-{random.randint(0, 9)}")  #! unstable-key
answer = httpx.post(  #! undeclared-effect unstable-key
    "http://localhost:9000/tickets",
    headers={"Idempotency-Key": str(random.random())},
)
"""

SCRAPING_AS_IT_SHOULD_BE = """
%load_ext nbckpt
import asyncio
import json
import random
from pathlib import Path
import httpx
import nbckpt
import sqlite3
# ---
store = sqlite3.connect("pages.db")
store.execute("create table if not exists page (url text primary key, body text)")
# ---
class Crawler:
    def __init__(self, base):
        self.client = httpx.Client(base_url=base)
    def page(self, url):
        return self.client.get(url).text
    def report(self, count, key):
        httpx.put(f"http://localhost:9000/done/{key}", json={"pages": count})
    def reported(self, key):
        return httpx.get(f"http://localhost:9000/done/{key}").json()
crawler = Crawler("http://localhost:9001")
# ---
%%step seeds
todo = json.loads(Path("seeds.json").read_text())
random.seed(3)
random.shuffle(todo)
# ---
%%step crawl --effects pages
pages = {}
for url in nbckpt.items(todo, keep=("pages",)):
    pages[url] = crawler.page(url)
    store.execute("insert or ignore into page values (?, ?)", (url, pages[url]))
# ---
%%step images --writes images/*.png
async def fetch(client, url):
    answer = await client.get(url)
    return answer.content
async with httpx.AsyncClient() as client:
    blobs = await asyncio.gather(*(fetch(client, url) for url in todo))
for number, blob in enumerate(blobs):
    Path(f"images/{number}.png").write_bytes(blob)
# ---
%%step tell --effects hooks
nbckpt.effect(
    "crawled",
    perform=lambda key: crawler.report(len(pages), key),
    lookup=lambda key: crawler.reported(key),
)
# ---
%%step ask --effects tickets
ticket = nbckpt.idempotency_key("crawl")
answer = httpx.post(
    "http://localhost:9000/tickets",
    headers={"Idempotency-Key": ticket},
)
"""

WAREHOUSE = """
%load_ext nbckpt
import os
import pandas as pd
import sqlalchemy as sa
import boto3
import nbckpt
# ---
engine = sa.create_engine("sqlite:///warehouse.db")
bucket = os.environ.get("BUCKET", "test")
s3 = boto3.client("s3")
# ---
%%step listing
names = [row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]]
# ---
%%step tables
frames = {}
for name in names:
    body = s3.get_object(Bucket=bucket, Key=name)["Body"]
    frames[name] = pd.read_csv(body)
table = pd.concat(frames.values())
# ---
%%step known
with engine.connect() as connection:
    known = connection.execute(sa.text("select id from fact")).fetchall()
# ---
%%step upload
table.to_sql("fact", engine, if_exists="append")  #! undeclared-effect
# ---
%%step rows
with engine.begin() as connection:
    connection.execute(sa.text("delete from fact where id is null"))  #! undeclared-effect
    connection.execute(sa.text("vacuum"))
# ---
%%step safe
with engine.begin() as connection:
    with nbckpt.transaction(connection, "rows") as step:
        if step.pending:
            connection.execute(sa.text("delete from fact where id is null"))
# ---
%%step publish
s3.put_object(Bucket=bucket, Key="fact.csv", Body=table.to_csv())  #! undeclared-effect
s3.copy_object(Bucket=bucket, Key="last.csv", CopySource="fact.csv")
# ---
%%step tidy --effects s3
s3.delete_object(Bucket=bucket, Key="old.csv")
# ---
%%step quiet
table.to_parquet("fact.parquet")  # nbckpt: ok undeclared-file read by nobody
# ---
%%step again
fact = pd.read_parquet("fact.parquet")  #! unseen-file
# ---
%%step never --always
connection = engine.connect()
"""

PAGES = {
    name: text
    for name, text in globals().items()
    if name.isupper() and isinstance(text, str) and "# ---" in text
}


def cells_of(text: str) -> list[str]:
    """Split a text into its cells; step-wide findings stand on the step's line."""
    return [cell.strip("\n") for cell in text.split("# ---\n")]


def expected(cells: list[str]) -> set[tuple[int, int, str]]:
    """Return cell, line and code of each mark."""
    return {
        (number, place, code)
        for number, cell in enumerate(cells, 1)
        for place, line in enumerate(cell.split("\n"), 1)
        for found in MARK.findall(line)
        for code in found.split()
    }


@pytest.mark.parametrize("name", PAGES)
def test_each_marked_line_has_its_findings_and_no_other_line_any(name: str) -> None:
    cells = cells_of(PAGES[name])
    sources = [MARK.sub("", cell) for cell in cells]
    numbered = enumerate(sources, 1)
    found = lint([read_cell_page(n, text, parse_body) for n, text in numbered]).findings

    seen = {(f.cell, f.line, f.code) for f in found if f.code != "decoration"}
    assert seen == expected(cells)


def test_step_that_says_goodbye_is_decoration() -> None:
    numbered = enumerate(cells_of(API_AT_FIRST), 1)
    found = lint([read_cell_page(n, text, parse_body) for n, text in numbered]).findings

    assert [f.step for f in found if f.code == "decoration"] == ["bye"]


@pytest.mark.parametrize("name", [name for name in PAGES if "SHOULD" in name])
def test_notebook_as_it_should_be_has_no_mark(name: str) -> None:
    assert expected(cells_of(PAGES[name])) == set()


def test_notebooks_hold_nearly_all_codes() -> None:
    marked = {
        code for text in PAGES.values() for _, _, code in expected(cells_of(text))
    }

    assert CODES.keys() - marked == {"bad-step", "decoration"}
