// What somebody does in the workbench, and sees there.
import assert from "node:assert/strict";
import { join } from "node:path";

export const LONG = 40_000;

export class User {
  constructor(page, pictures) {
    this.page = page;
    this.keyboard = page.keyboard;
    this.pictures = pictures;
    this.number = 0;
  }

  /** Take a picture, to be looked at. */
  async picture(name) {
    await this.page.waitForTimeout(400);
    this.number += 1;
    const file = `${String(this.number).padStart(2, "0")}-${name}.png`;
    await this.page.screenshot({ path: join(this.pictures, file) });
  }

  /** The first element with a text. */
  seen(selector, text) {
    return this.page.locator(selector, { hasText: text }).first();
  }

  row(text) {
    return this.seen(".quick-input-list .monaco-list-row", text);
  }

  async waitFor(what, check) {
    const end = Date.now() + LONG;
    while (!(await check())) {
      assert.ok(Date.now() < end, `never: ${what}`);
      await new Promise((done) => setTimeout(done, 200));
    }
    console.log(`ok ${what}`);
  }

  /** Type into the palette that a key opens, and take the first row, which has a text. */
  async palette(key, text, expected = text) {
    const input = this.page.locator(".quick-input-widget input").first();
    await input.waitFor({ state: "hidden", timeout: LONG });
    for (let tries = 0; tries < 10 && !(await input.isVisible()); tries += 1) {
      await this.keyboard.press(key);
      await this.page.waitForTimeout(500);
    }
    await this.keyboard.type(text);
    await this.row(expected).click({ timeout: LONG });
  }

  async command(title) {
    await this.palette("F1", title);
  }

  async openWorkspace(url, name = "train.py") {
    await this.page.goto(url);
    await this.page.locator(".monaco-workbench").waitFor({ timeout: LONG });
    const file = this.seen(".explorer-folders-view .monaco-list-row", name);
    await file.dblclick({ timeout: LONG });
    await this.page.locator(".squiggly-error").first().waitFor({ timeout: LONG });
  }

  /** Open a file of the workspace that has been opened before. */
  async openFile(name) {
    await this.palette("Control+p", name);
    await this.seen(".tab.active", name).waitFor({ timeout: LONG });
  }

  /** What is written in the lines of the editor that are in view. */
  async text() {
    const lines = await this.page.locator(".editor-instance .view-lines").first().innerText();
    return lines.replaceAll("\u00a0", " ").replaceAll("\u200c", "");
  }

  async focusEditor() {
    await this.page.locator(".editor-instance .view-lines").first().click();
  }

  /** Select the first place with a text. */
  async select(text) {
    await this.focusEditor();
    await this.keyboard.press("Control+Home");
    await this.keyboard.press("Control+f");
    await this.keyboard.type(text);
    await this.keyboard.press("Enter");
    await this.keyboard.press("Escape");
  }

  /** Replace the settings of the user, or of the machine, where programs are named. */
  async set(kind, settings) {
    await this.command(`Preferences: Open ${kind} Settings (JSON)`);
    await this.seen(".tab.active", "settings.json").waitFor({ timeout: LONG });
    await this.page.waitForTimeout(500);
    await this.focusEditor();
    await this.keyboard.press("Control+a");
    await this.keyboard.insertText(JSON.stringify(settings));
    await this.keyboard.press("Control+s");
    await this.page.locator(".tab.active.dirty").waitFor({ state: "detached", timeout: LONG });
    await this.command("View: Close Editor");
  }

  /** Choose from the light bulb of the place where the cursor is. */
  async fix(title, picture) {
    const action = await this.offered(title);
    await this.picture(picture);
    await action.click();
  }

  /** Have the editor preview an action of the light bulb. */
  async previewFix(title) {
    await this.offered(title);
    const chosen = this.seen(".action-widget .monaco-list-row.focused", title);
    await this.waitFor("it is chosen with the keyboard", async () => {
      const isChosen = await chosen.isVisible();
      if (!isChosen) {
        await this.keyboard.press("ArrowDown");
      }
      return isChosen;
    });
    await this.keyboard.press("Control+Enter");
  }

  async offered(title) {
    const action = this.seen(".action-widget .monaco-list-row", title);
    await this.waitFor(`the light bulb offers "${title}"`, async () => {
      await this.keyboard.press("Control+.");
      return action.waitFor({ timeout: 3_000 }).then(
        () => true,
        () => false,
      );
    });
    return action;
  }

  /** The page that a webview shows. */
  webview() {
    return this.page.frameLocator("iframe.webview.ready").frameLocator("#active-frame");
  }
}
